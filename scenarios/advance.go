package scenarios

import (
	"context"
	"fmt"
	"time"
)

// longestRealAdvance bounds "advance" in real time; longer ones need virtual time.
const longestRealAdvance = 5 * time.Second

// advanceStep is the virtual time between two looks whether the run was interrupted.
const advanceStep = time.Hour

var advanceCommand = command{
	name:  "advance",
	args:  "DURATION",
	least: 1, most: 1,
	summary: "let time pass",
	details: `DURATION is written like 90s, 10m or 1h30m. In virtual time it passes at once,
and everything due in that time happens: leases and tokens expire,
controllers resync. In real time no more than ` + longestRealAdvance.String() + ` may pass.`,
	example:    "advance 1h",
	noNegation: true,
	unbounded:  true,
	run: func(ctx context.Context, s *session, args []string) error {
		duration, err := time.ParseDuration(args[0])
		if err != nil || duration <= 0 {
			return fmt.Errorf("%w: %q is not a duration like 10m", errUsage, args[0])
		}
		return s.advance(ctx, duration)
	},
}

func (s *session) advance(ctx context.Context, duration time.Duration) error {
	if s.opts.RealTime && duration > longestRealAdvance {
		return fmt.Errorf("%w: it would take %s of real time, and %s is the limit; run the script in virtual time",
			errUsage, duration, longestRealAdvance)
	}
	for left := duration; left > 0; left -= advanceStep {
		select {
		case <-time.After(min(left, advanceStep)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if s.outer.Err() != nil {
			return errInterrupted
		}
	}
	return nil
}
