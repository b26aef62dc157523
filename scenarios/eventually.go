package scenarios

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"snowglobe.test/internal/nearest"
)

// retryPause is the time between two tries at first, by the script's clock. Later it is
// a tenth of the time so far: each try is a request, which costs real time.
const retryPause = 10 * time.Millisecond

var eventuallyCommand = command{
	name:  "eventually",
	args:  "[--for DURATION] [!] COMMAND [ARGUMENT]...",
	least: 1, most: anyNumber,
	summary: "run a command again and again until it succeeds, or with ! fails",
	details: `At first it tries every 10ms by the script's clock, and then less and less often, after a
tenth of the time spent so far, for at most a minute or DURATION. The error is that of
the last try.`,
	example:   "eventually expect /apis/example.com/v1/widgets 200",
	unbounded: true,
	wraps:     true,
	prepare: func(flags *pflag.FlagSet) action {
		limit := flags.Duration("for", patience, "")
		flags.SetInterspersed(false)
		return func(ctx context.Context, s *session, args []string) error {
			return s.repeat(ctx, *limit, args, func(err error) bool { return err == nil })
		}
	},
}

var alwaysCommand = command{
	name:  "always",
	args:  "--for DURATION [!] COMMAND [ARGUMENT]...",
	least: 1, most: anyNumber,
	summary:   "run a command again and again for a while, and fail as soon as it does",
	details:   `It pauses between tries as "eventually" does.`,
	example:   "always --for 5s expect /apis/example.com/v1/widgets 503",
	unbounded: true,
	wraps:     true,
	prepare: func(flags *pflag.FlagSet) action {
		limit := flags.Duration("for", 0, "")
		flags.SetInterspersed(false)
		return func(ctx context.Context, s *session, args []string) error {
			if *limit <= 0 {
				return fmt.Errorf("%w: say for how long, as in --for 5s", errUsage)
			}
			err := s.repeat(ctx, *limit, args, func(err error) bool { return err != nil })
			if errors.Is(err, errRepeated) {
				return nil
			}
			return err
		}
	},
}

// negation before a command says that it must fail.
const negation = "!"

var errSucceeded = errors.New("it succeeded, and was expected to fail")

// negate is the outcome of a command that is expected to fail. A mistake is none.
func negate(err error) error {
	var misuse usageError
	switch {
	case err == nil:
		return errSucceeded
	case errors.As(err, &misuse):
		return err
	}
	return nil
}

// errRepeated is why a command is not run again: its time is over.
var errRepeated = errors.New("its time is over")

// repeat runs a command until it is done, and returns what it returned. If that does
// not happen in time, the error is errRepeated and the last one.
func (s *session) repeat(ctx context.Context, limit time.Duration, args []string, done func(error) bool) error {
	for began := time.Now(); ; {
		s.out.Reset()
		err := s.wrapped(args)
		var misuse usageError
		switch {
		case errors.As(err, &misuse), done(err):
			return err
		case s.outer.Err() != nil:
			return errInterrupted
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

// wrapped runs the command that another one wraps.
func (s *session) wrapped(args []string) error {
	if args[0] == negation && len(args) > 1 {
		return negate(s.wrapped(args[1:]))
	}
	i := slices.IndexFunc(s.verbs, func(c command) bool { return c.name == args[0] })
	if i < 0 {
		var names []string
		for _, c := range s.verbs {
			names = append(names, c.name)
		}
		return usageError{fmt.Sprintf("unknown command %q%s", args[0], nearest.DidYouMean(args[0], names)), "COMMAND [ARGUMENT]..."}
	}
	return s.verbs[i].invoke(s, args[1:])
}
