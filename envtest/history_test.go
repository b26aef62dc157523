package envtest_test

import (
	"context"
	"fmt"
	"path"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"snowglobe.test/envtest"
)

// change is one event as both a watch of the API and one of the store tell it.
type change struct {
	Revision string
	Type     watch.EventType
	Name     string
}

// retryPause is more than the pause of a RetryWatcher between two watches. A
// server that starts knows no events from before: who comes to it must have seen
// them elsewhere.
const retryPause = 2 * time.Second

// told is what a watch tells after a revision.
type told struct {
	from    string
	changes <-chan change
}

// lastWrite is the name of the object with which a history ends.
const lastWrite = "zz-last"

// follow watches the ConfigMaps through a client that resumes by itself, from now
// on. Resumed says how often it has begun.
func follow(t *testing.T, cp *envtest.ControlPlane, config *rest.Config) (events told, resumed func() int) {
	t.Helper()
	client, begun, from := configMapsOf(config), make(chan struct{}, 1000), latest(t, cp)
	watcher, err := watchtools.NewRetryWatcherWithContext(t.Context(), from, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			opened, err := client.Watch(ctx, opts)
			if err == nil {
				begun <- struct{}{}
			}
			return opened, err
		},
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		watcher.Stop()
		<-watcher.Done()
	})
	seen := make(chan change, 10000)
	go func() {
		defer close(seen)
		for event := range watcher.ResultChan() {
			object, ok := event.Object.(*corev1.ConfigMap)
			if !ok || event.Type == watch.Bookmark {
				if event.Type == watch.Error {
					seen <- change{Type: watch.Error, Name: fmt.Sprint(event.Object)}
				}
				continue
			}
			seen <- change{object.ResourceVersion, event.Type, object.Name}
			if object.Name == lastWrite {
				return
			}
		}
	}()
	return told{from, seen}, func() int { return len(begun) }
}

// write creates, updates and deletes until it is stopped, every fifty milliseconds.
func write(t *testing.T, client typedcorev1.ConfigMapInterface) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			name := fmt.Sprintf("w-%d", i%7)
			// What a crash has cut off may have been written or not.
			switch i / 7 % 3 {
			case 0:
				_, _ = client.Create(context.WithoutCancel(ctx), newConfigMap(name), metav1.CreateOptions{})
			case 1:
				_, _ = client.Update(context.WithoutCancel(ctx), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"i": fmt.Sprint(i)}}, metav1.UpdateOptions{})
			default:
				_ = client.Delete(context.WithoutCancel(ctx), name, metav1.DeleteOptions{})
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

func writeBurst(t *testing.T, client typedcorev1.ConfigMapInterface, prefix string, n int) {
	t.Helper()
	for i := range n {
		createAt(t, client, fmt.Sprintf("%s-%d", prefix, i))
	}
}

// compareHistory ends a history and compares what was seen of it with the store's.
func compareHistory(t *testing.T, cp *envtest.ControlPlane, events told) {
	t.Helper()
	assert.Empty(t, historyDiff(t, cp, events), "events (-store +seen)")
}

func historyDiff(t *testing.T, cp *envtest.ControlPlane, events told) string {
	t.Helper()
	createAt(t, configMapsOf(cp.Config()), lastWrite)
	var seen []change
	for event := range events.changes {
		seen = append(seen, event)
	}
	require.NotEmpty(t, seen, "nothing was seen")
	stored := history(t, cp, events.from)
	t.Logf("%d events", len(stored))
	return cmp.Diff(stored, seen)
}

// history asks the store itself for what has happened to the ConfigMaps after a
// revision.
func history(t *testing.T, cp *envtest.ControlPlane, after string) (changes []change) {
	t.Helper()
	var from int64
	_, err := fmt.Sscan(after, &from)
	require.NoError(t, err)
	client, err := cp.Store().Client()
	require.NoError(t, err)
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for response := range client.Watch(ctx, "/registry/configmaps/default/", clientv3.WithPrefix(), clientv3.WithRev(from+1)) {
		require.NoError(t, response.Err())
		for _, event := range response.Events {
			kind := watch.Modified
			switch {
			case event.Type == clientv3.EventTypeDelete:
				kind = watch.Deleted
			case event.IsCreate():
				kind = watch.Added
			}
			name := path.Base(string(event.Kv.Key))
			changes = append(changes, change{fmt.Sprint(event.Kv.ModRevision), kind, name})
			if name == lastWrite {
				return changes
			}
		}
	}
	t.Fatal("the store's watch has ended")
	return nil
}
