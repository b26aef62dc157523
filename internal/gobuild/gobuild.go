// Package gobuild runs "go build" for those who wait for it: it says at once what is being
// built, and from time to time how far it is. It never decides what is built, or how.
package gobuild

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// interval is the time between two lines about a build.
const interval = 30 * time.Second

// grace is how long an interrupted build may take to end: its linker ends first, and what
// it has written is removed.
const grace = time.Minute

// Run runs a go command that was made with a context and whose first argument is "build", and
// returns what it says, which explains an error. to is told what is built, in words like "the
// program", and how many packages are compiled. When the context ends, the command is
// interrupted, and nothing of it is left when Run returns.
func Run(ctx context.Context, command *exec.Cmd, what string, to io.Writer) (said string, err error) {
	return run(ctx, command, what, to, interval)
}

func run(ctx context.Context, command *exec.Cmd, what string, to io.Writer, interval time.Duration) (said string, err error) {
	fmt.Fprintf(to, "snowglobe: building %s; the first time this takes some minutes\n", what)
	began := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	var reporting sync.WaitGroup
	defer reporting.Wait()
	defer cancel()
	output := &output{}
	reporting.Go(output.counter(ctx, command))
	command.Args = slices.Insert(slices.Clone(command.Args), 2, "-v")
	command.Stdout, command.Stderr = output, output
	// It stays in our process group, unlike those of group.Run: we may be a test, which Ctrl-C
	// ends at once, and a build in a group of its own would go on.
	command.Cancel = func() error {
		if command.Process.Signal(os.Interrupt) == nil {
			return nil
		}
		return command.Process.Kill() // where no process can be interrupted
	}
	command.WaitDelay = grace
	reporting.Go(func() {
		again := time.NewTicker(interval)
		defer again.Stop()
		for {
			select {
			case <-again.C:
				fmt.Fprintf(to, "snowglobe: still building: %s (%s)\n", output.compiled(), time.Since(began).Round(time.Second))
			case <-ctx.Done():
				return
			}
		}
	})
	err = command.Run()
	return output.text(), err
}

// counter returns what finds out how many packages a build is made of, which may take
// seconds.
func (o *output) counter(ctx context.Context, build *exec.Cmd) func() {
	args := []string{"list", "-deps"}
	for i := 2; i < len(build.Args); i++ {
		if build.Args[i] == "-o" { // which "go list" does not have
			i++
			continue
		}
		args = append(args, build.Args[i])
	}
	list := exec.CommandContext(ctx, build.Path, args...)
	list.Dir, list.Env = build.Dir, build.Env
	return func() {
		packages, err := list.Output()
		if err != nil {
			return // "go build" tells what is wrong
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		o.all = bytes.Count(packages, []byte("\n"))
	}
}

// output is what "go build -v" says: the packages that it compiles, and everything else.
type output struct {
	mu       sync.Mutex
	packages int
	partial  string // a line whose end has not come yet
	rest     strings.Builder
	all      int // packages there are, 0 while that is not known
}

// Write implements io.Writer.
func (o *output) Write(said []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := o.partial + string(said)
	for {
		line, after, ended := strings.Cut(text, "\n")
		if !ended {
			o.partial = text
			return len(said), nil
		}
		if strings.ContainsAny(line, " \t") || line == "" {
			o.rest.WriteString(line + "\n")
		} else {
			o.packages++ // an import path
		}
		text = after
	}
}

// compiled says how far the build is.
func (o *output) compiled() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == 0 {
		return fmt.Sprintf("%d packages compiled", o.packages)
	}
	return fmt.Sprintf("%d packages compiled, of %d at most", o.packages, o.all)
}

func (o *output) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.rest.String() + o.partial
}
