package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// retryPause is the time between two tries at first, by the script's clock. Later it is
// a tenth of the time so far: each try is a request, which costs real time.
const retryPause = 10 * time.Millisecond

// Eventually is the command that runs another until it succeeds.
func (r *Run) Eventually() Command {
	return Command{
		Name:    "eventually",
		Args:    "[--for DURATION] [!] COMMAND [ARGUMENT]...",
		Summary: "run a command again and again until it succeeds, or with ! fails",
		Details: `At first it tries every 10ms by the script's clock, and then less and less often, after a
tenth of the time spent so far, for at most a minute or DURATION. The error is that of
the last try.`,
		Example:   "eventually expect /apis/example.com/v1/widgets 200",
		Unbounded: true,
		Wraps:     true,
		Prepare: func(flags *pflag.FlagSet) Action {
			limit := flags.Duration("for", Patience, "")
			return func(ctx context.Context, args []string) error {
				return r.repeat(ctx, *limit, args, func(err error) bool { return err == nil })
			}
		},
	}
}

// Consistently is the command that runs another until it fails.
func (r *Run) Consistently() Command {
	return Command{
		Name:      "consistently",
		Args:      "--for DURATION [!] COMMAND [ARGUMENT]...",
		Summary:   "run a command again and again for a while, and fail as soon as it does",
		Details:   `It pauses between tries as "eventually" does.`,
		Example:   "consistently --for 5s expect /apis/example.com/v1/widgets 503",
		Unbounded: true,
		Wraps:     true,
		Static: func(flags *pflag.FlagSet, _ []string) error {
			if limit, err := flags.GetDuration("for"); err != nil || limit <= 0 {
				return fmt.Errorf("%w: say for how long, as in --for 5s", ErrUsage)
			}
			return nil
		},
		Prepare: func(flags *pflag.FlagSet) Action {
			limit := flags.Duration("for", 0, "")
			return func(ctx context.Context, args []string) error {
				err := r.repeat(ctx, *limit, args, func(err error) bool { return err != nil })
				if errors.Is(err, errRepeated) {
					return nil
				}
				return err
			}
		},
	}
}

// errRepeated is why a command is not run again: its time is over.
var errRepeated = errors.New("its time is over")

// repeat runs a command until it is done, and returns what it returned. If that does
// not happen in time, the error is errRepeated and the last one.
func (r *Run) repeat(ctx context.Context, limit time.Duration, args []string, done func(error) bool) error {
	for began := time.Now(); ; {
		r.Stdout.Reset()
		err := r.wrapped(args)
		switch {
		case isMisuse(err), done(err):
			return err
		case r.Interrupted():
			return ErrInterrupted
		case time.Since(began) >= limit:
			return fmt.Errorf("%w after %s: %s: %w", errRepeated, limit, strings.Join(args, " "), err)
		}
		select {
		case <-time.After(max(retryPause, time.Since(began)/10)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
