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

// force is for what a stop does when the server has not ended by itself: what is left of its
// time or, if its caller has had enough, as much as that would have been.
func (t timeouts) force(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Err() == nil {
		return context.WithCancel(ctx)
	}
	d := t.stop / 4
	return context.WithTimeoutCause(context.WithoutCancel(ctx), d, fmt.Errorf("not within %s more", d))
}

// asked is the first part of a stop, in which the server ends as it is asked to; rules may hold it.
func (t timeouts) asked(ctx context.Context) (context.Context, context.CancelFunc) {
	d := t.remaining(ctx) * 3 / 4
	return context.WithTimeoutCause(ctx, d, fmt.Errorf("not within %s, three quarters of what it has (WithTimeouts changes that)", d.Round(time.Millisecond)))
}

// share is what one of n servers that have yet to be stopped has of the time that is left.
func (t timeouts) share(ctx context.Context, n int) (context.Context, context.CancelFunc) {
	d := t.remaining(ctx) / time.Duration(n)
	return context.WithTimeoutCause(ctx, d, fmt.Errorf("not within %s", d.Round(time.Millisecond)))
}

// remaining is what a stop has: the time until its context's deadline, or all of its own.
func (t timeouts) remaining(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return t.stop
	}
	return time.Until(deadline)
}

// within bounds a step of a start, such as "a start" itself.
func (t timeouts) within(ctx context.Context, step string, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, t.start, startLimit{t.start, step})
	defer cancel()
	return explain(ctx, do(ctx))
}

// startLimit is the error of a step of a start that takes too long, which names what changes that.
type startLimit struct {
	after time.Duration
	step  string
}

func (l startLimit) Error() string {
	return fmt.Sprintf("not within %s, the limit of %s (WithTimeouts, up --start-timeout, and --timeout of a script's start change it)", l.after, l.step)
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
