package bench

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The stamp of an event: its number, counted from 0, and the time just before its
// writer sent it, in nanoseconds on the load's clock.
const (
	numberAnnotation = "bench.snowglobe.test/number"
	sentAnnotation   = "bench.snowglobe.test/sent"
)

// writer is one client that keeps updating one object.
type writer struct {
	load   *load
	client connection
	object *corev1.ConfigMap
}

// openWriter connects a writer and creates its object. Neither is measured.
func (l *load) openWriter(ctx context.Context, number int) (*writer, error) {
	client, err := connect(l.config, contentTypes[l.opts.Encoding])
	if err != nil {
		return nil, err
	}
	w := &writer{load: l, client: client, object: &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: fmt.Sprintf("writer-%d", number)},
		Data:       map[string]string{"payload": strings.Repeat("x", l.opts.PayloadBytes)},
	}}
	if _, err := client.CoreV1().ConfigMaps(l.namespace).Create(ctx, w.object, metav1.CreateOptions{}); err != nil {
		client.close()
		return nil, fmt.Errorf("make the objects of the load: %w", err)
	}
	return w, nil
}

// write writes all events at the rate asked for, or as fast as it can; the last
// once all others are acknowledged, so a watcher that has it gets no other.
func (l *load) write(ctx context.Context, writers []*writer) error {
	last := l.events - 1
	writing, writingCtx := errgroup.WithContext(ctx)
	for number, w := range writers {
		writing.Go(func() error { return w.writeEvery(writingCtx, number, len(writers), last) })
	}
	if err := writing.Wait(); err != nil {
		return err
	}
	return writers[last%len(writers)].writeEvery(ctx, last, len(writers), l.events)
}

// writeEvery writes the events first, first+step, first+2*step, ... before end.
func (w *writer) writeEvery(ctx context.Context, first, step, end int) error {
	for number := first; number < end; number += step {
		due := time.Duration(float64(number) / w.load.opts.Rate * float64(time.Second))
		if err := sleep(ctx, due-time.Since(w.load.begun)); err != nil {
			return err
		}
		if err := w.write(ctx, number); err != nil {
			return fmt.Errorf("write event %d: %w", number+1, err)
		}
	}
	return nil
}

func (w *writer) write(ctx context.Context, number int) error {
	sent := time.Since(w.load.begun)
	w.object.Annotations = map[string]string{
		numberAnnotation: strconv.Itoa(number),
		sentAnnotation:   strconv.FormatInt(int64(sent), 10),
	}
	// Without a resourceVersion the update is unconditional: one request.
	if _, err := w.client.CoreV1().ConfigMaps(w.object.Namespace).Update(ctx, w.object, metav1.UpdateOptions{}); err != nil {
		return err
	}
	w.load.writing.record(number, time.Since(w.load.begun)-sent)
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
