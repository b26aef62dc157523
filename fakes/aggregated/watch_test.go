package aggregated_test

import (
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"snowglobe.test/envtest/memnet"
	"snowglobe.test/fakes/aggregated"
)

// expect reads so many events of a watch as there are wanted.
func expect(t *testing.T, events watch.Interface, want ...string) {
	t.Helper()
	for _, one := range want {
		event, open := <-events.ResultChan()
		require.True(t, open, "no %s", one)
		assert.Equal(t, one, describe(event))
	}
}

func describe(event watch.Event) string {
	switch o := event.Object.(type) {
	case *unstructured.Unstructured:
		if event.Type == watch.Bookmark {
			return fmt.Sprint(event.Type, " ", o.GetAnnotations()[metav1.InitialEventsAnnotationKey])
		}
		return fmt.Sprint(event.Type, " ", o.GetName(), " ", o.GetLabels()["size"])
	case *metav1.Status:
		return fmt.Sprint(event.Type, " ", o.Reason)
	default:
		return fmt.Sprintf("%T", o)
	}
}

func TestWatch(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		ctx, client := t.Context(), w.dynamic().Resource(widgets)
		w.put(widget("default", "a", 1))
		list, err := client.List(ctx, metav1.ListOptions{})
		require.NoError(t, err)
		w.put(widget("default", "b", 1))
		open := func(namespace string, options metav1.ListOptions) watch.Interface {
			events, err := client.Namespace(namespace).Watch(ctx, options)
			require.NoError(t, err)
			return events
		}
		all := open("", metav1.ListOptions{})
		since := open("", metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
		ones := open("default", metav1.ListOptions{ResourceVersion: list.GetResourceVersion(), LabelSelector: "size=1"})
		named := open("", metav1.ListOptions{FieldSelector: "metadata.name=c"})
		streamed := open("", metav1.ListOptions{SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true})
		expect(t, all, "ADDED a 1", "ADDED b 1")
		expect(t, since, "ADDED b 1")
		expect(t, ones, "ADDED b 1")
		expect(t, streamed, "ADDED a 1", "ADDED b 1", "BOOKMARK true")

		w.put(widget("default", "b", 2), widget("other", "c", 1), widget("default", "b", 1), widget("default", "b", 1))
		w.put(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "other.example.com/v1", "kind": "Gadget", "metadata": map[string]any{"name": "g"}}})
		require.True(t, w.Remove(widgets.GroupResource(), "default", "b"))
		for _, events := range []watch.Interface{all, since, streamed} {
			expect(t, events, "MODIFIED b 2", "ADDED c 1", "MODIFIED b 1", "DELETED b 1")
		}
		expect(t, ones, "DELETED b 1", "ADDED b 1", "DELETED b 1")
		expect(t, named, "ADDED c 1")
		for _, events := range []watch.Interface{all, since, ones, named, streamed} {
			events.Stop()
		}
	})
}

// TestWatchResumes begins where another watch ended, also after a deletion.
func TestWatchResumes(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		ctx, client := t.Context(), w.dynamic().Resource(widgets)
		w.put(widget("default", "a", 1))
		events, err := client.Watch(ctx, metav1.ListOptions{})
		require.NoError(t, err)
		expect(t, events, "ADDED a 1")
		require.True(t, w.Remove(widgets.GroupResource(), "default", "a"))
		deleted := <-events.ResultChan()
		events.Stop()
		w.put(widget("default", "b", 1))
		events, err = client.Watch(ctx, metav1.ListOptions{ResourceVersion: deleted.Object.(*unstructured.Unstructured).GetResourceVersion()})
		require.NoError(t, err)
		expect(t, events, "ADDED b 1")
		events.Stop()
	})
}

func TestWatchEnds(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		ctx, client := t.Context(), w.dynamic().Resource(widgets)
		w.put(widget("default", "a", 1))
		list, err := client.List(ctx, metav1.ListOptions{})
		require.NoError(t, err)
		for name, c := range map[string]struct {
			options metav1.ListOptions
			end     func()
		}{
			"its time":  {metav1.ListOptions{TimeoutSeconds: new(int64(60))}, func() {}},
			"broken":    {metav1.ListOptions{}, w.BreakWatches},
			"all broke": {metav1.ListOptions{}, w.BreakAll},
		} {
			if c.options.TimeoutSeconds != nil && !w.bubble {
				continue
			}
			events, err := client.Watch(ctx, c.options)
			require.NoError(t, err, name)
			expect(t, events, "ADDED a 1")
			c.end()
			for event := range events.ResultChan() { // client-go may say that it was broken
				assert.Equal(t, watch.Error, event.Type, name)
			}
		}
		w.put(widget("default", "a", 2))
		w.Compact()
		_, err = client.Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
		assert.True(t, apierrors.IsResourceExpired(err), err)
	})
}

// TestWatchBroken tells a watch that is broken off from one that has ended.
func TestWatchBroken(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		response, err := w.do(t.Context(), "GET", "/apis/example.com/v1/widgets?watch=true", "")
		require.NoError(t, err)
		w.BreakWatches()
		_, err = io.ReadAll(response.Body)
		assert.Error(t, err)
		assert.NoError(t, response.Body.Close())
		if !w.bubble {
			return
		}
		response, err = w.do(t.Context(), "GET", "/apis/example.com/v1/widgets?watch=true&timeoutSeconds=60", "")
		require.NoError(t, err)
		_, err = io.ReadAll(response.Body)
		assert.NoError(t, err)
		assert.NoError(t, response.Body.Close())
	})
}

// TestBookmarks lets an hour pass.
func TestBookmarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memnet.Listen(), aggregated.Config{Resources: resources, BookmarkInterval: 20 * time.Minute})
		began := time.Now()
		events, err := w.dynamic().Resource(widgets).Watch(t.Context(), metav1.ListOptions{AllowWatchBookmarks: true, ResourceVersion: "1"})
		require.NoError(t, err)
		expect(t, events, "BOOKMARK ", "BOOKMARK ", "BOOKMARK ")
		assert.Equal(t, time.Hour, time.Since(began))
		w.put(widget("default", "a", 1))
		expect(t, events, "ADDED a 1")
		bookmark := <-events.ResultChan()
		assert.Equal(t, "2", bookmark.Object.(*unstructured.Unstructured).GetResourceVersion())
		events.Stop()
		w.end()
	})
}

// TestInformer keeps client-go's cache up to date through all that can happen.
func TestInformer(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		w.put(widget("default", "a", 1))
		factory := dynamicinformer.NewDynamicSharedInformerFactory(w.dynamic(), 0)
		informer := factory.ForResource(widgets).Informer()
		seen := make(chan string, 100)
		tell := func(what string) func(any) {
			return func(o any) { seen <- what + " " + o.(*unstructured.Unstructured).GetName() }
		}
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: tell("add"), DeleteFunc: tell("delete"), UpdateFunc: func(_, o any) { tell("update")(o) },
		})
		require.NoError(t, err)
		stop := make(chan struct{})
		factory.Start(stop)
		await := func(want string) { // among others, when all is listed again
			for <-seen != want {
			}
		}
		await("add a")
		w.put(widget("default", "a", 2))
		await("update a")
		w.BreakAll()
		w.put(widget("default", "b", 1))
		await("add b")
		w.BreakWatches()
		w.put(widget("default", "a", 3))
		w.Compact()
		await("update a")
		require.True(t, w.Remove(widgets.GroupResource(), "default", "a"))
		await("delete a")
		assert.Equal(t, []string{"default/b"}, informer.GetStore().ListKeys())
		close(stop)
		factory.Shutdown()
	})
}
