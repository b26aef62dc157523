package inject

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/tools/cache"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/fault/edge"
)

// listingStore is a store that has one watch, to whose channel a test writes.
type listingStore struct {
	storage.Interface
	watch *watch.FakeWatcher
}

// Watch implements storage.Interface.
func (s *listingStore) Watch(context.Context, string, storage.ListOptions) (watch.Interface, error) {
	return s.watch, nil
}

// listerWatcher is how a reflector of client-go's watches a cacheSource, as one of
// upstream's watch caches does.
type listerWatcher struct{ source storage.Interface }

// List implements cache.ListerWatcher.
func (listerWatcher) List(metav1.ListOptions) (runtime.Object, error) {
	return nil, fmt.Errorf("the watch begins with the list")
}

// Watch implements cache.ListerWatcher.
func (w listerWatcher) Watch(opts metav1.ListOptions) (watch.Interface, error) {
	return w.source.Watch(context.Background(), "/registry/configmaps/", storage.ListOptions{SendInitialEvents: opts.SendInitialEvents})
}

// listed is a reflector that watches.
type listed struct {
	*testing.T
	in    *watch.FakeWatcher
	store cache.Store
	set   *fault.Set
}

// listing runs f with a reflector whose watch meets rules.
func listing(t *testing.T, rule string, f func(l *listed)) {
	synctest.Test(t, func(t *testing.T) {
		set := fault.New(fault.Config{})
		if rule != "" {
			parsed, err := fault.Parse(rule, nil)
			require.NoError(t, err)
			_, err = set.Add(parsed)
			require.NoError(t, err)
		}
		injector := edge.NewInjector(set, "a", edge.Effects{})
		l := &listed{T: t, in: watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 100}), store: cache.NewStore(cache.MetaNamespaceKeyFunc), set: set}
		source, end := CacheSource(&listingStore{watch: l.in}, injector, schema.GroupResource{Resource: "configmaps"})
		reflector := cache.NewReflectorWithOptions(listerWatcher{source}, &corev1.ConfigMap{}, l.store, cache.ReflectorOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = reflector.ListAndWatchWithContext(ctx)
		}()
		synctest.Wait()
		f(l)
		cancel()
		end()
		<-ended
	})
}

func listedMap(name string, version int) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: fmt.Sprint(version)}}
}

// bookmark ends the list.
func (l *listed) bookmark() {
	end := listedMap("", 5)
	assert.NoError(l, storage.AnnotateInitialEventsEndBookmark(end))
	l.in.Action(watch.Bookmark, end)
}

// has is what the reflector has seen, if it is ready.
func (l *listed) has() []string {
	synctest.Wait()
	return l.store.ListKeys()
}

// TestListingWatch has the reflector see the whole list, and then what comes later;
// in between the rules are asked.
func TestListingWatch(t *testing.T) {
	for _, rule := range []string{"", "hold cache/configmaps verb=ready", "freeze cache/configmaps at=4", "hold cache/configmaps verb=event"} {
		t.Run(rule, func(t *testing.T) {
			listing(t, rule, func(l *listed) {
				for i := range 3 {
					l.in.Add(listedMap(fmt.Sprint("listed-", i), i+1))
				}
				assert.Empty(l, l.has(), "the list is not over")
				l.bookmark()
				l.in.Add(listedMap("early", 6))
				synctest.Wait()
				if len(l.set.Rules()) > 0 && len(l.set.Rules()[0].Gate().Waiting()) > 0 {
					assert.Empty(l, l.has())
					l.set.Rules()[0].Gate().Open()
				}
				assert.ElementsMatch(l, []string{"listed-0", "listed-1", "listed-2", "early"}, l.has())
				for i := range 50 {
					l.in.Add(listedMap(fmt.Sprint("later-", i), 7+i))
				}
				assert.Len(l, l.has(), 54)
			})
		})
	}
}

// TestListingWatchHolds asks about the bookmark, and about nothing else.
func TestListingWatchHolds(t *testing.T) {
	listing(t, "hold cache/configmaps", func(l *listed) {
		l.in.Add(listedMap("a", 1))
		l.bookmark()
		synctest.Wait()
		waiting := l.set.Rules()[0].Gate().Waiting()
		if assert.Len(l, waiting, 1) {
			assert.Equal(l, fault.Operation{Point: "cache/configmaps", Phase: fault.Before, Server: "a", Verb: "ready", Revision: 5, Occurrence: 1}, waiting[0])
		}
	})
}

// TestListingWatchDrops loses the bookmark: the reflector is never ready, and hears of
// what comes behind it all the same.
func TestListingWatchDrops(t *testing.T) {
	listing(t, "drop cache/configmaps verb=ready", func(l *listed) {
		l.bookmark()
		l.in.Add(listedMap("a", 6))
		l.in.Add(listedMap("b", 7))
		assert.Empty(l, l.has())
		l.bookmark() // as none comes from a store: it is no longer asked about
		assert.ElementsMatch(l, []string{"a", "b"}, l.has())
	})
}

// TestListingWatchEnds ends a watch at each place, and leaves no goroutine behind.
func TestListingWatchEnds(t *testing.T) {
	for name, fill := range map[string]func(l *listed){
		"idle":         func(*listed) {},
		"held":         func(l *listed) { l.bookmark() },
		"by the store": func(l *listed) { l.in.Stop() },
		"by the server": func(l *listed) {
			l.in.Action(watch.Error, &metav1.Status{Code: 410, Reason: metav1.StatusReasonExpired})
		},
	} {
		t.Run(name, func(t *testing.T) {
			listing(t, "hold cache/configmaps", func(l *listed) {
				fill(l)
				synctest.Wait()
			})
		})
	}
}
