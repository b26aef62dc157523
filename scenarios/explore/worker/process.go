package worker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"snowglobe.test/internal/group"
	"snowglobe.test/scenarios/explore"
)

// Process runs each task in a new process of a program.
type Process struct {
	// Program is the file of the program, and Args are its arguments.
	Program string
	Args    []string
	// Limit is how long a run may take on the wall; the default is two minutes.
	Limit time.Duration
}

const defaultLimit = 2 * time.Minute

// Run implements explore.Runner.
func (p Process) Run(ctx context.Context, task explore.Task) (explore.Outcome, error) {
	limited, cancel := p.limited(ctx)
	defer cancel()
	text, err := json.Marshal(task)
	if err != nil {
		return explore.Outcome{}, fmt.Errorf("task: %w", err)
	}
	var out, problems bytes.Buffer
	child := exec.CommandContext(limited, p.Program, p.Args...)
	child.Env = append(os.Environ(), variable+"=1")
	child.Stdin, child.Stdout, child.Stderr = bytes.NewReader(text), &out, &problems
	begun := time.Now()
	err = group.Run(child)
	took := time.Since(begun)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) || limited.Err() != nil:
		return p.ended(ctx, limited, took, fmt.Sprint(err), problems.String())
	case err != nil:
		return explore.Outcome{}, fmt.Errorf("run the script in a process: %w", err)
	}
	return outcome(out.Bytes(), took)
}

// limited is the context of a run.
func (p Process) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, cmp.Or(p.Limit, defaultLimit))
}

// ended is the outcome of a process that ended without an answer.
func (p Process) ended(ctx, limited context.Context, took time.Duration, how, said string) (explore.Outcome, error) {
	switch {
	case ctx.Err() != nil:
		return explore.Outcome{}, context.Cause(ctx)
	case limited.Err() != nil:
		return died(took, "late", "the run did not end within %s", cmp.Or(p.Limit, defaultLimit)), nil
	}
	return died(took, how, "the process of the run ended by itself: %s: %s", how, reason(said)), nil
}

// outcome reads the answer of a process.
func outcome(answered []byte, took time.Duration) (explore.Outcome, error) {
	var a answer
	if err := json.Unmarshal(answered, &a); err != nil {
		return explore.Outcome{}, fmt.Errorf("outcome of the run: %w", err)
	}
	if a.NotRun != "" {
		return explore.Outcome{}, errors.New(a.NotRun)
	}
	a.Spent.Process = max(0, took-a.Run)
	return a.Outcome, nil
}

func died(took time.Duration, cause, format string, args ...any) explore.Outcome {
	return explore.Outcome{
		Failure: &explore.Failure{Kind: explore.Died, Cause: cause, Text: fmt.Sprintf(format, args...)},
		Spent:   explore.Spent{Process: took},
	}
}

// reason is the line of a process's last words that says why it ended.
func reason(stderr string) string {
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") {
			return strings.TrimSpace(line)
		}
	}
	first, _, _ := strings.Cut(strings.TrimSpace(stderr), "\n")
	return first
}
