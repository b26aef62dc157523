package engine

import (
	"bufio"
	"context"
)

// Keyboard reads what a person types, outside of the bubble of virtual time: a read can't be
// interrupted, and whoever waits for it can.
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
			more := scanner.Scan() // after an interrupt, until the process ends
			k.lines <- typedLine{scanner.Text(), !more, scanner.Err()}
		}
	}()
	return k
}

// line waits for a line. Once the run has been interrupted, no other may be wanted.
func (k *Keyboard) line() (typedLine, error) {
	k.wanted <- struct{}{}
	select {
	case line := <-k.lines:
		return line, nil
	case <-k.done:
		return typedLine{}, ErrInterrupted
	}
}

// Close ends it. It may be nil.
func (k *Keyboard) Close() {
	if k != nil {
		close(k.wanted)
	}
}
