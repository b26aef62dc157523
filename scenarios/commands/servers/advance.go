package servers

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"snowglobe.test/scenarios/engine"
)

// longestRealAdvance bounds "advance" in real time; longer ones need virtual time.
const longestRealAdvance = 5 * time.Second

// advanceStep is the virtual time between two looks whether the run was interrupted: an hour
// of one server's time is seconds of work.
const advanceStep = 5 * time.Minute

func (s *Servers) Advance() engine.Command {
	return engine.Command{
		Name:    "advance",
		Args:    "DURATION",
		Summary: "let time pass",
		Details: `DURATION is written like 90s, 10m or 1h30m. In virtual time it passes at once,
and everything due in that time happens: leases and tokens expire,
controllers resync. In real time no more than ` + longestRealAdvance.String() + ` may pass.`,
		Example:    "advance 1h",
		NoNegation: true,
		Unbounded:  true,
		Static: func(_ *pflag.FlagSet, args []string) error {
			_, err := PositiveDuration(args[0], "10m")
			return err
		},
		Run: func(ctx context.Context, args []string) error {
			duration, _ := PositiveDuration(args[0], "10m")
			return s.advance(ctx, duration)
		},
	}
}

// PositiveDuration reads a duration above 0, such as the example.
func PositiveDuration(text, example string) (time.Duration, error) {
	duration, err := time.ParseDuration(text)
	if err != nil || duration <= 0 {
		return 0, fmt.Errorf("%w: %q is not a duration like %s", engine.ErrUsage, text, example)
	}
	return duration, nil
}

func (s *Servers) advance(ctx context.Context, duration time.Duration) error {
	if s.run.RealTime() && duration > longestRealAdvance {
		return fmt.Errorf("%w: it would take %s of real time, and %s is the limit; run the script in virtual time",
			engine.ErrUsage, duration, longestRealAdvance)
	}
	for left := duration; left > 0; left -= advanceStep {
		select {
		case <-time.After(min(left, advanceStep)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if s.run.Interrupted() {
			return engine.ErrInterrupted
		}
	}
	return nil
}
