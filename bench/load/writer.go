package load

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"snowglobe.test/bench/wire"
)

// warmUp has the writers write for a while what is not measured, so that what is measured does not
// begin with the first requests of a connection, and an empty heap.
func (l *Load) warmUp(ctx context.Context) error {
	return l.paced(ctx, int(l.Options.Rate*l.Options.WarmUp.Seconds()),
		func(ctx context.Context, writer, _ int, due time.Duration) error {
			return l.on.Write(ctx, writer, wire.Stamp{Number: l.warmUpNumber(), Due: due})
		})
}

// write writes all events, and then the last one of each object.
func (l *Load) write(ctx context.Context) error {
	err := l.paced(ctx, l.events, func(ctx context.Context, writer, number int, due time.Duration) error {
		if err := l.on.Write(ctx, writer, wire.Stamp{Number: number, Due: due}); err != nil {
			return fmt.Errorf("write event %d: %w", number+1, err)
		}
		l.writing.Record(number, l.Now()-due)
		return nil
	})
	if err != nil {
		return err
	}
	last, ctx := errgroup.WithContext(ctx)
	for writer := range l.Objects {
		last.Go(func() error {
			if err := l.on.Write(ctx, writer, wire.Stamp{Number: l.events + writer}); err != nil {
				return fmt.Errorf("write the last event of object %d: %w", writer+1, err)
			}
			return nil
		})
	}
	return last.Wait()
}

// paced has one client for each object call f for its share of the numbers below count, when each
// is due at the rate of the load. One that is due while its writer still waits for the answer to
// the one before is late, and its latency begins when it was due: a server that stalls may not
// hide how long by stalling its clients too.
func (l *Load) paced(ctx context.Context, count int,
	f func(ctx context.Context, writer, number int, due time.Duration) error) error {
	from := l.Now()
	writing, ctx := errgroup.WithContext(ctx)
	for writer := range l.Objects {
		writing.Go(func() error {
			for number := writer; number < count; number += l.Objects {
				due := from + time.Duration(float64(number)/l.Options.Rate*float64(time.Second))
				if err := sleep(ctx, due-l.Now()); err != nil {
					return err
				}
				if err := f(ctx, writer, number, due); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return writing.Wait()
}

// sleep waits for a positive duration or until the context ends.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
