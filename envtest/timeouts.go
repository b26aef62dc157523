package envtest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"snowglobe.test/envtest/virtualtime"
)

// timeouts bound what a control plane waits for, in the clock it lives in.
type timeouts struct{ start, stop time.Duration }

// defaultStop is longer where time is virtual, and costs nothing: a client of
// upstream's that has failed again and again sleeps for up to a minute, and nothing
// can wake it.
func defaultStop() time.Duration {
	if virtualtime.Virtual() {
		return 2 * time.Minute
	}
	return 30 * time.Second
}

func (t timeouts) boundStop(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, t.stop, fmt.Errorf("not within %s", t.stop))
}

func (t timeouts) boundStart(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, t.start, startLimit(t.start))
}

// startLimit is the error of a start that takes too long, which names what changes that.
type startLimit time.Duration

func (l startLimit) Error() string {
	return fmt.Sprintf("not within %s, the limit of a start (WithTimeouts, up --start-timeout, and --timeout of a script's start change it)", time.Duration(l))
}

// Unwrap returns the error that contexts have for this.
func (startLimit) Unwrap() error { return context.DeadlineExceeded }

// explain adds to the error of a start that its time was up, unless it says so: clients of
// upstream's know only that some context has ended.
func explain(ctx context.Context, err error) error {
	var limit startLimit
	if err == nil || !errors.As(context.Cause(ctx), &limit) || errors.Is(err, limit) {
		return err
	}
	return fmt.Errorf("%w: %w", limit, err)
}
