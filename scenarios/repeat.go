package scenarios

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

var repeatCommand = command{
	name:  "repeat",
	args:  "--times COUNT COMMAND [ARGUMENT]...",
	least: 1, most: anyNumber,
	summary:   "run a command a number of times, and fail as soon as it does",
	details:   `There is no pause in between. It prints what the command printed the last time.`,
	example:   "repeat --times 100 apply named.yaml",
	unbounded: true,
	wraps:     true,
	prepare: func(flags *pflag.FlagSet) action {
		times := flags.Int("times", 0, "")
		flags.SetInterspersed(false)
		return func(_ context.Context, s *session, args []string) error {
			if *times <= 0 {
				return fmt.Errorf("%w: say how often, as in --times 100", errUsage)
			}
			for i := range *times {
				if s.outer.Err() != nil {
					return errInterrupted
				}
				s.out.Reset()
				if err := s.wrapped(args); err != nil {
					return fmt.Errorf("time %d of %d: %s: %w", i+1, *times, strings.Join(args, " "), err)
				}
			}
			return nil
		}
	},
}
