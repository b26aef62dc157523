package servers

import (
	"context"

	"github.com/spf13/pflag"

	"snowglobe.test/envtest/virtualtime"
	"snowglobe.test/scenarios/engine"
	"snowglobe.test/scenarios/script"
)

func (s *Servers) Clock() engine.Command {
	return engine.Command{
		Name:    script.ClockCommand,
		Args:    "TIME",
		Summary: "begin at this time, in place of 2000-01-01T00:00:00Z",
		Details: `It is the first command of a script, or the second after "seed". A script that brings
certificates, tokens or times of today begins at a time at which they are valid. In real
time the script skips itself.`,
		Example:    "clock 2026-11-27T09:00:00Z",
		NoNegation: true,
		First:      true,
		Static: func(_ *pflag.FlagSet, args []string) error {
			begin, err := script.ParseClock(args[0])
			if err == nil {
				err = virtualtime.CheckClock(begin)
			}
			return engine.Misuse(err)
		},
		Run: func(_ context.Context, args []string) error {
			if s.run.RealTime() {
				s.run.Skip("it begins at " + args[0] + ", in virtual time only")
			}
			return nil // in virtual time the run has begun then
		},
	}
}
