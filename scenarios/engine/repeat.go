package engine

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// Repeat is the command that runs another a number of times.
func (r *Run) Repeat() Command {
	return Command{
		Name:      "repeat",
		Args:      "--times COUNT COMMAND [ARGUMENT]...",
		Summary:   "run a command a number of times, and fail as soon as it does",
		Details:   `There is no pause in between. It prints what the command printed the last time.`,
		Example:   "repeat --times 100 apply named.yaml",
		Unbounded: true,
		Wraps:     true,
		Static: func(flags *pflag.FlagSet, _ []string) error {
			if times, err := flags.GetInt("times"); err != nil || times <= 0 {
				return fmt.Errorf("%w: say how often, as in --times 100", ErrUsage)
			}
			return nil
		},
		Prepare: func(flags *pflag.FlagSet) Action {
			times := flags.Int("times", 0, "")
			return func(_ context.Context, args []string) error {
				for i := range *times {
					if r.Interrupted() {
						return ErrInterrupted
					}
					r.Stdout.Reset()
					if err := r.wrapped(args); err != nil {
						return fmt.Errorf("time %d of %d: %s: %w", i+1, *times, strings.Join(args, " "), err)
					}
				}
				return nil
			}
		},
	}
}
