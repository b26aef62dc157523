package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// load is one measurement of watch fan-out on one API server: some clients write and
// many watch, in a namespace of its own.
type load struct {
	opts      WatchOptions
	config    *rest.Config
	events    int
	namespace string
	from      string // resourceVersion that the watches start after
	admin     connection
	writers   []*writer
	watchers  []*watcher

	begun    time.Time // zero of the load's clock, which writers and watchers share
	delivery *latencies
	writing  *latencies
}

// parallelOpens bounds how many watches are opened at a time.
const parallelOpens = 32

// cleanupTimeout bounds how long a load takes to clean up.
const cleanupTimeout = 10 * time.Second

// runLoad runs one load. It returns a result even if the error is ErrDelivery.
func runLoad(ctx context.Context, opts WatchOptions, transport string, config *rest.Config) (_ *WatchLoad, err error) {
	l := &load{opts: opts, config: config, events: opts.events(), delivery: newLatencies(), writing: newLatencies()}
	defer func() { err = errors.Join(err, l.close(ctx)) }()
	if err := l.open(ctx); err != nil {
		return nil, err
	}
	fmt.Fprintf(opts.Progress, "%s: %d watchers, %g events/s for %s\n", transport, opts.Watchers, opts.Rate, opts.Duration)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	written, err := l.run(ctx)
	runtime.ReadMemStats(&after)
	if err != nil {
		return nil, err
	}
	result := l.sum(transport, written)
	if result.Deliveries > 0 {
		result.AllocsPerDelivery = float64(after.Mallocs-before.Mallocs) / float64(result.Deliveries)
		result.BytesPerDelivery = float64(after.TotalAlloc-before.TotalAlloc) / float64(result.Deliveries)
	}
	fmt.Fprintf(opts.Progress, "%s: %d deliveries, p50 %s, p99 %s\n", transport, result.Deliveries, round(result.Latency.P50), round(result.Latency.P99))
	return result, l.defects()
}

// open makes the namespace and connects all writers and watchers before the load
// begins. If it fails, close closes what it has opened.
func (l *load) open(ctx context.Context) (err error) {
	if l.admin, err = connect(l.config, contentTypes[l.opts.Encoding]); err != nil {
		return err
	}
	if err := l.makeNamespace(ctx); err != nil {
		return err
	}
	for number := range l.opts.Writers {
		w, err := l.openWriter(ctx, number)
		if err != nil {
			return err
		}
		l.writers = append(l.writers, w)
	}
	list, err := l.admin.CoreV1().ConfigMaps(l.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the objects of the load: %w", err)
	}
	l.from = list.ResourceVersion
	return l.openWatches(ctx)
}

// answerTimeout bounds the first request to a target.
const answerTimeout = 10 * time.Second

// makeNamespace makes the namespace of the load, and is the first to ask the target.
func (l *load) makeNamespace(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-watch-"}}
	namespace, err := l.admin.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating a namespace for the load, within %s, failed: %w; is an API server running there, and may this user write?", answerTimeout, err)
	}
	l.namespace = namespace.Name
	return nil
}

// close ends all connections. On a cluster that keeps running it also deletes the
// namespace, first because then nothing more can be created in it, and the objects,
// because only a namespace controller would remove them.
func (l *load) close(ctx context.Context) error {
	for _, w := range l.watchers {
		w.close()
	}
	for _, w := range l.writers {
		w.client.close()
	}
	defer l.admin.close()
	if l.opts.Target == nil || l.namespace == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	err := errors.Join(
		l.admin.CoreV1().Namespaces().Delete(ctx, l.namespace, metav1.DeleteOptions{}),
		l.admin.CoreV1().ConfigMaps(l.namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	if err != nil {
		return fmt.Errorf("delete the namespace %s of the load: %w", l.namespace, err)
	}
	return nil
}

func (l *load) openWatches(ctx context.Context) error {
	var opening errgroup.Group
	opening.SetLimit(parallelOpens)
	for number := range l.opts.Watchers {
		w := &watcher{number: number, load: l, tally: newTally(l.events)}
		l.watchers = append(l.watchers, w)
		opening.Go(func() error { return w.open(ctx) })
	}
	return opening.Wait() // the other errors are likely the same
}

// errDrainTimeout ends watchers that still wait for the last event.
var errDrainTimeout = errors.New("the last event did not arrive in time")

// run writes and watches until all watchers have the last event or the drain timeout
// expires, and returns how long the writing took.
func (l *load) run(ctx context.Context) (written time.Duration, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l.begun = time.Now()
	work, ctx := errgroup.WithContext(ctx)
	for _, w := range l.watchers {
		work.Go(func() error { return w.follow(ctx) })
	}
	work.Go(func() error {
		err := l.write(ctx, l.writers)
		written = time.Since(l.begun)
		time.AfterFunc(l.opts.Drain, func() { cancel(errDrainTimeout) })
		return err
	})
	if err := work.Wait(); err != nil && !errors.Is(context.Cause(ctx), errDrainTimeout) {
		return 0, err
	}
	return written, nil
}

// defects returns one error for everything the watchers missed.
func (l *load) defects() error {
	sick, first := 0, ""
	for _, w := range l.watchers {
		if words := w.tally.defects(); words != "" {
			if sick++; sick == 1 {
				first = fmt.Sprintf("watcher %d %s", w.number+1, words)
			}
		}
	}
	if sick == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d of %d watchers; %s", ErrDelivery, sick, len(l.watchers), first)
}
