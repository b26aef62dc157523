package engine

import (
	"bufio"
	"context"
)

// Keyboard reads what a person types, in a goroutine outside the bubble of virtual time. A
// read can't be interrupted, but the caller of line, which waits for the goroutine, can be.
type Keyboard struct {
	wanted chan struct{}
	lines  chan typedLine
	done   <-chan struct{} // of the run
}

// typedLine is a line that was typed, or the end of what is typed.
type typedLine struct {
	text  string
	ended bool
	err   error
}

// OpenKeyboard reads a line whenever one is wanted, until it is closed. It returns nil if
// there is no user to ask.
func OpenKeyboard(ctx context.Context, prompt *Prompt) *Keyboard {
	if prompt == nil {
		return nil
	}
	k := &Keyboard{wanted: make(chan struct{}), lines: make(chan typedLine, 1), done: ctx.Done()}
	go func() {
		scanner := bufio.NewScanner(prompt.In)
		for range k.wanted {
			more := scanner.Scan() // after an interrupt, it blocks until the process ends
			k.lines <- typedLine{scanner.Text(), !more, scanner.Err()}
		}
	}()
	return k
}

// line waits for a line. After it has returned ErrInterrupted it must not be called again:
// the goroutine still waits for the line before.
func (k *Keyboard) line() (typedLine, error) {
	k.wanted <- struct{}{}
	select {
	case line := <-k.lines:
		return line, nil
	case <-k.done:
		return typedLine{}, ErrInterrupted
	}
}

// Close ends the goroutine. A nil Keyboard has none.
func (k *Keyboard) Close() {
	if k != nil {
		close(k.wanted)
	}
}
