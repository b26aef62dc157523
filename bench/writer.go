package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
)

// writer is one client that keeps changing one object.
type writer struct {
	load   *load
	number int // of its object
	client connection
	path   string // of its object
}

// groupLabel is by what watchers select a group of objects.
const groupLabel = "bench.snowglobe.test/group"

// openWriter connects a writer and creates its object. Neither is measured.
func (l *load) openWriter(ctx context.Context, number int) (*writer, error) {
	client, err := connect(l.config, jsonType)
	if err != nil {
		return nil, err
	}
	group := number % l.groups
	name := fmt.Sprintf("writer-%d", number)
	folder := l.kind.path(l.namespaceOf(group))
	object, err := json.Marshal(l.kind.object(name, map[string]string{groupLabel: strconv.Itoa(l.selectorOf(group))}, l.payload))
	if err == nil {
		err = client.CoreV1().RESTClient().Post().AbsPath(folder).SetHeader("Content-Type", jsonType).Body(object).Do(ctx).Error()
	}
	if err != nil {
		client.close()
		return nil, fmt.Errorf("make the objects of the load: %w", err)
	}
	return &writer{load: l, number: number, client: client, path: folder + "/" + name}, nil
}

// write writes all events, each when it is due, and then the last one of each object.
func (l *load) write(ctx context.Context) error {
	writing, ctx := errgroup.WithContext(ctx)
	for _, w := range l.writers {
		writing.Go(func() error { return w.writeAll(ctx) })
	}
	return writing.Wait()
}

// writeAll writes the events of the writer's object. One that is due while the writer still waits
// for the answer to the one before is late, and its latency begins when it was due: a server that
// stalls may not hide how long by stalling its clients too.
func (w *writer) writeAll(ctx context.Context) error {
	for number := w.number; number < w.load.events; number += w.load.objects {
		due := time.Duration(float64(number) / w.load.opts.Rate * float64(time.Second))
		if err := sleep(ctx, due-time.Since(w.load.begun)); err != nil {
			return err
		}
		if err := w.write(ctx, stamp{number, due}); err != nil {
			return err
		}
		w.load.writing.record(number, time.Since(w.load.begun)-due)
	}
	return w.write(ctx, stamp{w.load.events + w.number, 0})
}

// write changes an annotation and nothing else.
func (w *writer) write(ctx context.Context, at stamp) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, stampAnnotation, at)
	if err := w.client.CoreV1().RESTClient().Patch(types.MergePatchType).AbsPath(w.path).Body([]byte(patch)).Do(ctx).Error(); err != nil {
		return fmt.Errorf("write event %d: %w", at.number+1, err)
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
