package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// load is one measurement of watch fan-out on one API server: some clients write and
// many watch, in namespaces of its own.
type load struct {
	numbering
	opts       WatchOptions
	config     *rest.Config
	kind       kind
	payload    string
	namespaces []string
	from       string // resourceVersion that the watches start after
	admin      connection
	writers    []*writer
	watchers   []*watcher
	shared     []connection // the connections of watchers

	begun    time.Time // zero of the load's clock, which writers and watchers share
	delivery *latencies
	writing  *latencies
	timedOut bool // watchers did not have all events in time
}

// parallelOpens bounds how many watches are opened at a time.
const parallelOpens = 32

// cleanupTimeout bounds how long a load takes to clean up.
const cleanupTimeout = 10 * time.Second

// runLoad runs one load, and says when it comes to a phase. It returns a result even if the error
// is ErrDelivery.
func runLoad(ctx context.Context, opts WatchOptions, transport string, config *rest.Config, comesTo func(phase)) (_ *WatchLoad, err error) {
	l := &load{
		opts: opts, config: config, kind: kinds[opts.Resource], payload: strings.Repeat("x", opts.PayloadBytes),
		numbering: numbering{events: opts.events(), objects: opts.Writers, groups: opts.Namespaces * opts.Selectors},
		delivery:  newLatencies(), writing: newLatencies(),
	}
	defer func() { err = errors.Join(err, l.close(ctx)) }()
	if err := l.prepare(ctx); err != nil {
		return nil, err
	}
	comesTo(phaseOpening)
	if err := l.openWatches(ctx); err != nil {
		return nil, err
	}
	fmt.Fprintf(opts.Progress, "%s: %d watchers, %g events/s for %s\n", transport, opts.Watchers, opts.Rate, opts.Duration)
	comesTo(phaseBegun)
	written, err := l.run(ctx)
	comesTo(phaseEnded)
	if err != nil {
		return nil, err
	}
	result := l.sum(transport, written)
	fmt.Fprintf(opts.Progress, "%s: %d deliveries, p50 %s, p99 %s\n", transport, result.Deliveries, round(result.Latency.P50), round(result.Latency.P99))
	return result, l.defects()
}

// namespaceOf is the namespace of a group of objects.
func (l *load) namespaceOf(group int) string { return l.namespaces[group%l.opts.Namespaces] }

// selectorOf is the value of the label of a group of objects.
func (l *load) selectorOf(group int) int { return group / l.opts.Namespaces }

// prepare makes what the load needs and connects all writers before it begins. If it fails, close
// closes what it has opened.
func (l *load) prepare(ctx context.Context) (err error) {
	if l.admin, err = connect(l.config, jsonType); err != nil {
		return err
	}
	for range l.opts.Namespaces {
		if err := l.makeNamespace(ctx); err != nil {
			return err
		}
	}
	if l.kind.Group == customGroup {
		if err := l.define(ctx); err != nil {
			return fmt.Errorf("make the resource definition of the load: %w", err)
		}
	}
	for number := range l.opts.Writers {
		w, err := l.openWriter(ctx, number)
		if err != nil {
			return err
		}
		l.writers = append(l.writers, w)
	}
	list, err := l.admin.dynamic.Resource(l.kind.gvr()).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return fmt.Errorf("list the objects of the load: %w", err)
	}
	l.from = list.GetResourceVersion()
	return nil
}

// answerTimeout bounds the first request to a target.
const answerTimeout = 10 * time.Second

// makeNamespace makes a namespace for the load, and is the first to ask the target. Pods need its
// ServiceAccount, which a controller may make too.
func (l *load) makeNamespace(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-watch-"}}
	namespace, err := l.admin.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating a namespace for the load, within %s, failed: %w; is an API server running there, and may this user write?", answerTimeout, err)
	}
	l.namespaces = append(l.namespaces, namespace.Name)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	_, err = l.admin.CoreV1().ServiceAccounts(namespace.Name).Create(ctx, account, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make the service account of the load: %w", err)
	}
	return nil
}

// close ends all connections, and deletes what the load has made: namespaces first, because then nothing more can be created in them, and then the objects,
// because only a namespace controller would remove them.
func (l *load) close(ctx context.Context) error {
	for _, w := range l.watchers {
		w.close()
	}
	for _, c := range l.shared {
		c.close()
	}
	for _, w := range l.writers {
		w.client.close()
	}
	defer l.admin.close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	var errs []error
	for _, namespace := range l.namespaces {
		errs = append(errs, l.admin.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{}),
			l.admin.dynamic.Resource(l.kind.gvr()).Namespace(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
			l.admin.CoreV1().ServiceAccounts(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	}
	if l.kind.Group == customGroup && l.namespaces != nil {
		errs = append(errs, l.undefine(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("delete the namespaces %s of the load, and what is in them: %w", strings.Join(l.namespaces, ", "), err)
	}
	return nil
}

// watchType is what watchers say that they send and accept. Those that decode nothing say it of
// each watch.
func (l *load) watchType() string {
	if l.opts.Decode {
		return encodings[l.opts.Encoding].accepted
	}
	return jsonType
}

func (l *load) openWatches(ctx context.Context) error {
	var opening errgroup.Group
	opening.SetLimit(parallelOpens)
	for number := range l.opts.Watchers {
		if number%l.opts.StreamsPerConnection == 0 {
			client, err := connect(l.config, l.watchType())
			if err != nil {
				return errors.Join(err, opening.Wait())
			}
			l.shared = append(l.shared, client)
		}
		w := &watcher{number: number, load: l, client: l.shared[len(l.shared)-1], tally: newTally(l.numbering, number%l.groups)}
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
		err := l.write(ctx)
		written = time.Since(l.begun)
		time.AfterFunc(l.opts.Drain, func() { cancel(errDrainTimeout) })
		return err
	})
	err = work.Wait()
	if l.timedOut = err != nil && errors.Is(context.Cause(ctx), errDrainTimeout); l.timedOut {
		return written, nil
	}
	return written, err
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
	return &deliveryError{fmt.Sprintf("%d of %d watchers; %s", sick, len(l.watchers), first)}
}

// deliveryError is an ErrDelivery that says what was not delivered.
type deliveryError struct{ defects string }

// Error implements error.
func (e *deliveryError) Error() string { return fmt.Sprintf("%v: %s", ErrDelivery, e.defects) }

// Unwrap returns ErrDelivery.
func (e *deliveryError) Unwrap() error { return ErrDelivery }
