package contract

import (
	"context"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"

	"snowglobe.test/internal/watchfilter"
)

// punctual is the store as a watch cache sees it, where progress is asked for by waiting reads
// alone, and an answer is of the moment of its request, or does not come. Upstream's ConsistentList
// expects a cache to stay as it is between two consistent reads. But while one waits, progress is
// asked for every tenth of a second, and the answer to a second request can come after the read,
// and tell of what was written since.
type punctual struct {
	storage.Interface
	waiting  atomic.Int64 // consistent reads
	revision atomic.Int64 // of the store
	asked    atomic.Int64 // the revision at the newest request
}

// RequestWatchProgress implements storage.Interface.
func (p *punctual) RequestWatchProgress(ctx context.Context) error {
	revision := p.revision.Load()
	if p.waiting.Load() == 0 {
		return nil
	}
	p.asked.Store(revision)
	return p.Interface.RequestWatchProgress(ctx)
}

// Watch implements storage.Interface.
func (p *punctual) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	inner, err := p.Interface.Watch(ctx, key, opts)
	if err != nil {
		return nil, err
	}
	return watchfilter.New(inner, func(event watch.Event) (watch.Event, bool) { return event, !p.late(event) }), nil
}

// late reports whether an event tells of progress after the newest request for it.
func (p *punctual) late(event watch.Event) bool {
	asked := p.asked.Load()
	return asked > 0 && event.Type == watch.Bookmark && revisionOf(event.Object) > asked
}

func revisionOf(object runtime.Object) int64 {
	revision, err := storage.APIObjectVersioner{}.ObjectResourceVersion(object)
	if err != nil {
		return 0
	}
	return int64(revision)
}

// punctualFixture is a watch cache on a punctual store.
type punctualFixture struct {
	*cachedFixture
	store   *punctual
	written func(context.Context, *testing.T) // is called after each write
}

// GetList implements storage.Interface.
func (f punctualFixture) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	if opts.ResourceVersion == "" {
		f.store.waiting.Add(1)
		defer f.store.waiting.Add(-1)
	}
	return f.cachedFixture.GetList(ctx, key, opts, list)
}

func (f punctualFixture) increaseRV(ctx context.Context, t *testing.T) int64 {
	revision := f.cachedFixture.increaseRV(ctx, t)
	f.store.revision.Store(revision)
	f.written(ctx, t)
	return revision
}

// stuttering is a store that can be made to ask for progress again, as if it had been asked to.
type stuttering struct {
	storage.Interface
	again   atomic.Pointer[context.Context] // of the newest request, for its stream
	answers atomic.Int64
}

// RequestWatchProgress implements storage.Interface.
func (s *stuttering) RequestWatchProgress(ctx context.Context) error {
	s.again.Store(&ctx)
	return s.Interface.RequestWatchProgress(ctx)
}

// Watch implements storage.Interface.
func (s *stuttering) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	inner, err := s.Interface.Watch(ctx, key, opts)
	if err != nil {
		return nil, err
	}
	return watchfilter.New(inner, func(event watch.Event) (watch.Event, bool) {
		if event.Type == watch.Bookmark {
			s.answers.Add(1)
		}
		return event, true
	}), nil
}

// stutters is how many answers have to come until the cache has heeded the first of them, if it gets
// it: this store, punctual and the cache each hold one.
const stutters = 4

// stutter asks again, and waits until the cache could have heeded the answer.
func (s *stuttering) stutter(ctx context.Context, t *testing.T) {
	t.Helper()
	again := s.again.Load()
	if again == nil {
		return // nobody has asked yet
	}
	before := s.answers.Load()
	for number := range int64(stutters) {
		must(t, s.Interface.RequestWatchProgress(*again))
		await(ctx, t, "an answer about progress", func() bool { return s.answers.Load() > before+number })
	}
}

// TestLateProgress has answers about progress come between two consistent reads.
func TestLateProgress(t *testing.T) {
	var cases []testCase
	for _, snapshots := range []bool{true, false} {
		c := consistentList("ConsistentList", snapshots, (*stuttering).stutter)
		c.open = each(newMemory, byClient)
		cases = append(cases, c)
	}
	runCases(t, cases)
}
