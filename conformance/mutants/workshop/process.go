package workshop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"snowglobe.test/conformance/mutants/trial"
	"snowglobe.test/internal/group"
)

// Process runs cases in a process of the program, with some mutants on, and calls tell with each
// line that it prints until tell returns false. When it returns, the process has ended and its
// temporary files are gone.
func (b Built) Process(ctx context.Context, mutants []int, order trial.Order, tell func(trial.Line) bool) (err error) {
	text, err := json.Marshal(order)
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "snowglobe-mutant-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	read, write := io.Pipe()
	said := &tail{}
	command := exec.CommandContext(within, b.Program)
	command.Env = append(os.Environ(), "SNOWGLOBE_MUTANTS="+strings.Trim(fmt.Sprint(mutants), "[]"), "TMPDIR="+temp)
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(text), write, said
	command.WaitDelay = 100 * time.Millisecond // it has nothing to clean up
	enough := make(chan bool, 1)
	go func() {
		enough <- follow(read, tell)
		cancel()
		_, _ = io.Copy(io.Discard, read)
	}()
	err = group.Run(command)
	_ = write.Close()
	switch {
	case <-enough:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("%w: %s", err, said)
	}
	return nil
}

// follow calls tell with each line until there are no more, or until tell returns false: enough.
func follow(from io.Reader, tell func(trial.Line) bool) (enough bool) {
	for decoder := json.NewDecoder(from); ; {
		var line trial.Line
		if decoder.Decode(&line) != nil {
			return false
		}
		if !tell(line) {
			return true
		}
	}
}

// tail keeps the end of what is written, which tells why a process crashed.
type tail struct{ text []byte }

// Write implements io.Writer.
func (t *tail) Write(text []byte) (int, error) {
	t.text = append(t.text, text...)
	t.text = t.text[max(0, len(t.text)-4096):]
	return len(text), nil
}

// String is what was kept, on one line.
func (t *tail) String() string { return strings.Join(strings.Fields(string(t.text)), " ") }
