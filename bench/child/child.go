// Package child has a program measure in a process of its own, which is the same program again.
package child

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"snowglobe.test/internal/group"
)

// variable is the environment variable that says what a process measures.
const variable = "SNOWGLOBE_BENCH"

// Requested returns what a measurement has executed this process for; empty if none has.
func Requested() (kind string) { return os.Getenv(variable) }

// ErrRequested is the error of a measurement in a process of another one.
var ErrRequested = errors.New("this process is a child of another measurement; the program must call bench.Child at " +
	"the start of main when bench.ChildRequested")

// Converse executes this program to measure something. It calls each with the lines that the
// process prints, to which it can reply.
func Converse(
	ctx context.Context, kind string, request any, progress io.Writer, each func(line []byte, reply io.Writer) error,
) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program, to execute it as a child: %w", err)
	}
	text, err := json.Marshal(request)
	if err != nil {
		return err
	}
	in, reply, err := os.Pipe()
	if err != nil {
		return err
	}
	defer in.Close()
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		_, _ = reply.Write(append(text, '\n')) // a child that does not read it fails
	}()
	var said bytes.Buffer
	printed := &lineWriter{each: func(line []byte) error { return each(line, reply) }}
	child := exec.CommandContext(ctx, program)
	child.Env = append(environment(), variable+"="+kind)
	child.Stdin, child.Stdout, child.Stderr = in, printed, io.MultiWriter(progress, &said)
	child.WaitDelay = endDelay
	err = group.Run(child)
	_ = in.Close() // so that nothing waits for a child that has ended to read it
	<-asked
	_ = reply.Close() // by now it is of no use
	switch {
	case printed.err != nil:
		return fmt.Errorf("a process of this program that measures the %s printed what is no measurement; "+
			"does main call bench.Child when bench.ChildRequested? %w", kind, printed.err)
	case err != nil:
		return fmt.Errorf("measure in a process of its own: %w: %s", err, tail(said.String()))
	}
	return nil
}

// lineWriter calls each with every line that is written, until it fails.
type lineWriter struct {
	each func(line []byte) error
	part []byte
	err  error
}

// Write implements io.Writer.
func (w *lineWriter) Write(p []byte) (int, error) {
	w.part = append(w.part, p...)
	for w.err == nil {
		line, rest, whole := bytes.Cut(w.part, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		w.err = w.each(line)
		w.part = rest
	}
	return 0, w.err
}

// endDelay is how long an interrupted child may take to stop what it started before it
// is killed. Envtest gives each of its processes 20 s.
const endDelay = time.Minute

// environment is this process's environment without what it measures for another one, and without
// the variables that make envtest run other binaries, use an existing cluster, or write to standard
// output.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(set string) bool {
		name, _, _ := strings.Cut(set, "=")
		return name == variable || strings.HasPrefix(name, "KUBEBUILDER_") || strings.HasPrefix(name, "TEST_ASSET_") ||
			name == "USE_EXISTING_CLUSTER"
	})
}

// tail returns the end of a text, short enough for an error message.
func tail(text string) string {
	const limit = 2000
	text = strings.TrimSpace(text)
	if len(text) > limit {
		text = "..." + text[len(text)-limit:]
	}
	return text
}
