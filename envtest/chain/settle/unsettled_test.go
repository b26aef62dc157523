package settle_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	kubescheme "k8s.io/client-go/kubernetes/scheme"

	"snowglobe.test/envtest/chain/reststorage"
	"snowglobe.test/envtest/chain/reststorage/reststoragetest"
	"snowglobe.test/envtest/chain/settle"
	"snowglobe.test/envtest/fault"
)

var pods = &reststoragetest.Resource{
	GroupVersionResource: corev1.SchemeGroupVersion.WithResource("pods"), Codecs: kubescheme.Codecs,
	Object: &corev1.Pod{}, List: &corev1.PodList{},
}

// The store is ahead of a watch cache, which is ahead of an informer, whose client
// knows only what the test tells it.
func TestUnsettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := reststoragetest.Start(t)
		rest := reststoragetest.New(t, store, reststorage.Config{})
		stored, destroy := reststoragetest.Add(t, rest, store, pods)
		client := fake.NewClientset()
		factory := informers.NewSharedInformerFactory(client, 0)
		factory.Core().V1().Pods().Informer()
		factory.Core().V1().Nodes().Informer() // no resource of the storage
		var inFlight []string
		server := &settle.Server{
			Name: "apiserver-0", Storage: rest, Informers: []settle.StartedInformers{settle.Started(factory)},
			InFlight: func(held []fault.Held) []string {
				assert.Empty(t, held, "held by another server")
				return inFlight
			},
		}
		others := []fault.Held{{Operation: fault.Operation{Point: "cache/pods", Server: "apiserver-1"}}}
		look := func() *settle.Unsettled {
			t.Helper()
			synctest.Wait()
			u, err := server.Unsettled(t.Context(), others)
			require.NoError(t, err)
			return u
		}
		time.Sleep(time.Second)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
		key, err := pods.Key(pod)
		require.NoError(t, err)
		require.NoError(t, stored.Create(t.Context(), key, pod, pod, 0))
		assert.Empty(t, look().Late, "an informer that has not started is late")

		factory.StartWithContext(t.Context())
		t.Cleanup(factory.Shutdown) // when the context has ended
		factory.WaitForCacheSyncWithContext(t.Context())
		inFlight = []string{"GET /api is in flight"}
		assert.Equal(t, []string{"GET /api is in flight", "an informer has not seen pods default/a at revision " + pod.ResourceVersion}, look().Late)
		inFlight = nil
		_, err = client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
		require.NoError(t, err)
		assert.Empty(t, look().Late)

		_, err = rest.Client().Put(t.Context(), "another", "key")
		require.NoError(t, err)
		u := look()
		assert.Equal(t, []string{fmt.Sprintf("the watch cache of pods is at revision %s, the store at %d", pod.ResourceVersion, u.Revision)}, u.Late)
		require.NoError(t, rest.RequestProgress(t.Context()))
		assert.Empty(t, look().Late)
		destroy()
		assert.Empty(t, look().Late, "a resource that is gone is late")
	})
}

// What rules hold does not count, and a context that has ended is an error.
func TestUnsettledHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := reststoragetest.Start(t)
		rest := reststoragetest.New(t, store, reststorage.Config{})
		reststoragetest.Add(t, rest, store, pods)
		server := &settle.Server{Name: "apiserver-0", Storage: rest, InFlight: func(held []fault.Held) []string { return nil }}
		time.Sleep(time.Second)
		_, err := rest.Client().Put(t.Context(), "another", "key")
		require.NoError(t, err)
		for of, want := range map[string]int{"apiserver-0": 0, "apiserver-1": 1} {
			held := []fault.Held{{Operation: fault.Operation{Point: "cache/pods", Server: of}}}
			u, err := server.Unsettled(t.Context(), held)
			require.NoError(t, err)
			assert.Len(t, u.Late, want, of)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = server.Unsettled(ctx, nil)
		assert.ErrorIs(t, err, context.Canceled)
	})
}
