package bench

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

// write has one client for each object write all events, each when it is due, and then the last
// one of each object.
func (l *load) write(ctx context.Context) error {
	writing, ctx := errgroup.WithContext(ctx)
	for writer := range l.objects {
		writing.Go(func() error { return l.writeAll(ctx, writer) })
	}
	return writing.Wait()
}

// writeAll writes the events of one object. One that is due while the writer still waits for the
// answer to the one before is late, and its latency begins when it was due: a server that stalls
// may not hide how long by stalling its clients too.
func (l *load) writeAll(ctx context.Context, writer int) error {
	for number := writer; number < l.events; number += l.objects {
		due := time.Duration(float64(number) / l.opts.Rate * float64(time.Second))
		if err := sleep(ctx, due-time.Since(l.begun)); err != nil {
			return err
		}
		if err := l.on.write(ctx, writer, stamp{number, due}); err != nil {
			return fmt.Errorf("write event %d: %w", number+1, err)
		}
		l.writing.record(number, time.Since(l.begun)-due)
	}
	if err := l.on.write(ctx, writer, stamp{l.events + writer, 0}); err != nil {
		return fmt.Errorf("write the last event of object %d: %w", writer+1, err)
	}
	return nil
}

// sleep waits for a positive duration or until the context ends.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
