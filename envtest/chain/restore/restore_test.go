package restore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/client/v3/kubernetes"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	apistorage "k8s.io/apiserver/pkg/storage"

	"snowglobe.test/envtest/chain/reststorage"
	"snowglobe.test/envtest/chain/reststorage/reststoragetest"
	"snowglobe.test/envtest/storage"
)

// A restore brings back what clients have changed, and leaves alone what belongs to
// others or to the servers themselves.
func TestRestoreLeavesAlone(t *testing.T) {
	const label = "apiserver.kubernetes.io/identity"
	for name, test := range map[string]struct {
		key, before, after string // empty: no such key
		alone              bool
	}{
		"changed":                   {"/registry/configmaps/default/a", "old", "new", false},
		"created":                   {"/registry/configmaps/default/a", "", "new", false},
		"deleted":                   {"/registry/configmaps/default/a", "old", "", false},
		"outside":                   {"/other/configmaps/default/a", "old", "new", true},
		"prefix of another":         {"/registry2/configmaps/default/a", "", "new", true},
		"endpoints lease":           {"/registry/masterleases/10.0.0.1", "old", "new", true},
		"peer lease":                {"/registry/peerserverleases/x", "", "new", true},
		"identity lease":            {"/registry/leases/kube-system/apiserver-x", label, label + "2", true},
		"identity lease gone":       {"/registry/leases/kube-system/apiserver-x", label, "", true},
		"another lease":             {"/registry/leases/kube-system/scheduler", "old", "new", false},
		"background":                {"/registry/namespaces/kube-system", "", "new", true},
		"background, changed":       {"/registry/namespaces/kube-system", "old", "new", false},
		"background, deleted":       {"/registry/namespaces/kube-system", "old", "", false},
		"address of the service":    {"/registry/ipaddresses/10.0.0.1", "", "new", true},
		"address of another":        {"/registry/ipaddresses/10.0.0.12", "", "new", false},
		"APIService, not automatic": {"/registry/apiregistration.k8s.io/apiservices/v1.x", "", "new", false},
		"APIService, at start":      {"/registry/apiregistration.k8s.io/apiservices/v1.x", "", `"kube-aggregator.kubernetes.io/automanaged":"onstart"`, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := reststoragetest.Start(t)
				r := New(store)
				rest := reststoragetest.New(t, store, reststorage.Config{})
				server := &Server{Storage: rest, Caches: noCaches{}, Prefix: "/registry", IdentityLabel: label, ServiceIP: "10.0.0.1"}
				write := func(value string) {
					t.Helper()
					var err error
					if value == "" {
						_, err = rest.Client().Delete(t.Context(), test.key)
					} else {
						_, err = rest.Client().Put(t.Context(), test.key, value)
					}
					require.NoError(t, err)
				}
				write(test.before)
				snapshot, err := r.Snapshot(t.Context(), []*Server{server})
				require.NoError(t, err)
				write(test.after)
				changes, err := r.Restore(t.Context(), []*Server{server}, snapshot)
				require.NoError(t, err)
				want := test.before
				if test.alone {
					want = test.after
					assert.Empty(t, changes)
				}
				found, err := rest.Client().KV.Get(t.Context(), test.key)
				require.NoError(t, err)
				var got string
				for _, kv := range found.Kvs {
					got = string(kv.Value)
				}
				assert.Equal(t, want, got)
			})
		})
	}
}

// What only servers have written since they booted stays as they have it.
func TestServerWrites(t *testing.T) {
	const key = "/registry/flowschemas/exempt"
	server := request.WithUser(t.Context(), &user.DefaultInfo{Name: user.APIServerUser})
	for name, test := range map[string]struct {
		do   func(*testing.T, *writer)
		want string
	}{
		"a server's update":      {func(t *testing.T, w *writer) { w.put(t, server, "status") }, "status"},
		"a client's update":      {func(t *testing.T, w *writer) { w.put(t, t.Context(), "changed") }, "boot"},
		"first one, then other":  {func(t *testing.T, w *writer) { w.put(t, t.Context(), "changed"); w.put(t, server, "status") }, "boot"},
		"deleted and made again": {func(t *testing.T, w *writer) { w.delete(t, server); w.put(t, server, "again") }, "boot"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := reststoragetest.Start(t)
				r := New(store)
				rest := reststoragetest.New(t, store, reststorage.Config{Writes: r})
				w := &writer{Interface: rest.Client().Kubernetes, key: key}
				servers := []*Server{{Storage: rest, Caches: noCaches{}, Prefix: "/registry"}}
				w.put(t, server, "boot")
				r.BootFinished()
				snapshot, err := r.Snapshot(t.Context(), servers)
				require.NoError(t, err)
				test.do(t, w)
				_, err = r.Restore(t.Context(), servers, snapshot)
				require.NoError(t, err)
				found, err := w.Get(t.Context(), key, kubernetes.GetOptions{})
				require.NoError(t, err)
				assert.Equal(t, test.want, string(found.KV.Value))
				// What a restore has brought back is the servers' no more.
				w.put(t, server, "after")
				_, err = r.Restore(t.Context(), servers, snapshot)
				require.NoError(t, err)
				found, err = w.Get(t.Context(), key, kubernetes.GetOptions{})
				require.NoError(t, err)
				if test.want == "boot" {
					assert.Equal(t, "boot", string(found.KV.Value))
				} else {
					assert.Equal(t, "after", string(found.KV.Value))
				}
			})
		})
	}
}

// writer writes one key as the etcd3 store does.
type writer struct {
	kubernetes.Interface
	key string
}

func (w *writer) put(t *testing.T, ctx context.Context, value string) {
	t.Helper()
	response, err := w.OptimisticPut(ctx, w.key, []byte(value), w.revision(t), kubernetes.PutOptions{})
	require.NoError(t, err)
	require.True(t, response.Succeeded)
}

func (w *writer) delete(t *testing.T, ctx context.Context) {
	t.Helper()
	response, err := w.OptimisticDelete(ctx, w.key, w.revision(t), kubernetes.DeleteOptions{})
	require.NoError(t, err)
	require.True(t, response.Succeeded)
}

func (w *writer) revision(t *testing.T) int64 {
	t.Helper()
	found, err := w.Get(t.Context(), w.key, kubernetes.GetOptions{})
	require.NoError(t, err)
	if found.KV == nil {
		return 0
	}
	return found.KV.ModRevision
}

// A store that keeps no snapshots is refused, and so is a restore below no server.
func TestRefuses(t *testing.T) {
	external := New(struct{ storage.Backend }{})
	_, err := external.Snapshot(t.Context(), nil)
	assert.ErrorContains(t, err, "keeps no snapshots")
	_, err = external.Restore(t.Context(), nil, nil)
	assert.ErrorContains(t, err, "keeps no snapshots")
	_, err = New(reststoragetest.Start(t)).Restore(t.Context(), nil, nil)
	assert.ErrorContains(t, err, "no API server runs")
}

// A restore waits for the watch caches of all servers. What one could not wait for,
// the next one does, and only one runs at a time.
func TestRestoreWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := reststoragetest.Start(t)
		first, second := startServer(t, store), startServer(t, store)
		r, servers := New(store), []*Server{first.Server, second.Server}
		snapshot, err := r.Snapshot(t.Context(), servers)
		require.NoError(t, err)
		before := first.contents(t)
		first.create(t.Context(), t, configMaps, configMap("a"))
		time.Sleep(time.Second)
		releaseFirst, releaseSecond := first.hold(), second.hold()

		enough := errors.New("enough")
		minute, cancel := context.WithTimeoutCause(t.Context(), time.Minute, enough)
		defer cancel()
		restored := make(chan error)
		go func() {
			_, err := r.Restore(minute, servers, snapshot)
			restored <- err
		}()
		time.Sleep(time.Second)
		assert.Equal(t, before, first.contents(t))
		soon, cancel := context.WithTimeoutCause(t.Context(), time.Second, enough)
		defer cancel()
		_, err = r.Restore(soon, servers, snapshot)
		require.ErrorIs(t, err, enough)
		assert.ErrorContains(t, err, "another restore has not ended")
		err = <-restored
		require.ErrorIs(t, err, enough)
		assert.ErrorContains(t, err, "the watch cache of configmaps has not caught up")

		start := time.Now()
		time.AfterFunc(10*time.Second, releaseFirst)
		time.AfterFunc(time.Minute, releaseSecond)
		for range 2 {
			go func() {
				_, err := r.Restore(t.Context(), servers, snapshot)
				restored <- err
			}()
		}
		assert.NoError(t, <-restored)
		assert.Equal(t, time.Minute, time.Since(start), "a restore has not waited for the second server")
		assert.NoError(t, <-restored)
		assert.Equal(t, time.Minute, time.Since(start))
		assert.Empty(t, slices.Concat(first.unseen, second.unseen))
	})
}

// The APIServices of CRDs are left to the aggregator until it has followed the CRDs,
// and are then what they were.
func TestRestoreCRDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := reststoragetest.Start(t)
		server := startServer(t, store)
		r, servers := New(store), []*Server{server.Server}
		server.create(t.Context(), t, definitions, crd("kept.example.com"))
		server.create(t.Context(), t, definitions, crd("back.example.com"))
		snapshot, err := r.Snapshot(t.Context(), servers)
		require.NoError(t, err)
		before := server.contents(t)
		for _, service := range []string{"v1.kept.example.com", "v1.back.example.com"} {
			assert.Contains(t, before, "/registry/apiregistration.k8s.io/apiservices/"+service, "the snapshot has not waited for the aggregator")
		}
		for _, wait := range []time.Duration{0, time.Minute} { // before the aggregator follows, and after
			server.delete(t.Context(), t, definitions, crd("back.example.com"))
			server.create(t.Context(), t, definitions, crd("gone.example.com"))
			time.Sleep(wait)
			changes, err := r.Restore(t.Context(), servers, snapshot)
			require.NoError(t, err)
			assert.NotEmpty(t, changes)
			assert.Equal(t, before, server.contents(t))
			time.Sleep(time.Minute)
			assert.Equal(t, before, server.contents(t), "the aggregator has changed what was brought back")
		}
		require.NoError(t, server.CRDs.Wait(t.Context(), "widgets.back.example.com", 1))
	})
}

// An APIService that a snapshot lacks, although its CRD is there, is not deleted only
// to be created again.
func TestRestoreKeepsAPIServices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := reststoragetest.Start(t)
		server := startServer(t, store)
		server.lazy.Store(true)
		server.create(t.Context(), t, definitions, crd("example.com"))
		early, err := store.Snapshot(t.Context())
		require.NoError(t, err)
		server.lazy.Store(false)
		time.Sleep(time.Minute)
		before := server.contents(t)
		changes, err := New(store).Restore(t.Context(), []*Server{server.Server}, early)
		require.NoError(t, err)
		assert.Empty(t, changes)
		assert.Equal(t, before, server.contents(t))
	})
}

// What the aggregator has yet to do is in the error.
func TestSnapshotWaitsForCRDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := reststoragetest.Start(t)
		server := startServer(t, store)
		r, servers := New(store), []*Server{server.Server}
		late := func() string {
			t.Helper()
			enough := errors.New("enough")
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, enough)
			defer cancel()
			_, err := r.Snapshot(ctx, servers)
			require.ErrorIs(t, err, enough)
			return err.Error()
		}
		server.lazy.Store(true)
		server.create(t.Context(), t, definitions, crd("example.com"))
		assert.Equal(t, "the aggregator has not created APIService v1.example.com of a CRD: enough", late())
		server.lazy.Store(false)
		_, err := r.Snapshot(t.Context(), servers)
		require.NoError(t, err)
		server.lazy.Store(true)
		server.delete(t.Context(), t, definitions, crd("example.com"))
		assert.Equal(t, "the aggregator has not deleted APIService v1.example.com, whose CRDs are gone: enough", late())
		server.lazy.Store(false)
		_, err = r.Snapshot(t.Context(), servers)
		require.NoError(t, err)

		dying := crd("dying.example.com")
		dying.DeletionTimestamp, dying.Finalizers = &metav1.Time{Time: time.Now()}, []string{apiextensionsv1.CustomResourceCleanupFinalizer}
		server.create(t.Context(), t, definitions, dying)
		assert.Equal(t, "CRD widgets.dying.example.com is not yet deleted: enough", late())
		server.delete(t.Context(), t, definitions, dying)
		blocked := crd("blocked.example.com") // by a client's finalizer: the server does not delete it by itself
		blocked.DeletionTimestamp, blocked.Finalizers = &metav1.Time{Time: time.Now()}, []string{"example.com/finalizer"}
		server.create(t.Context(), t, definitions, blocked)
		_, err = r.Snapshot(t.Context(), servers)
		require.NoError(t, err)
	})
}

func TestCRDObserver(t *testing.T) {
	var off *CRDObserver
	require.NoError(t, off.Wait(t.Context(), "widgets.example.com", 1))
	synctest.Test(t, func(t *testing.T) {
		store := reststoragetest.Start(t)
		server := startServer(t, store)
		enough := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, enough)
		defer cancel()
		err := server.CRDs.Wait(ctx, "widgets.example.com", 1)
		require.ErrorIs(t, err, enough)
		assert.ErrorContains(t, err, "the CRD informer has not seen a change of widgets.example.com")
		time.AfterFunc(time.Minute, func() { server.create(t.Context(), t, definitions, crd("example.com")) })
		start := time.Now()
		require.NoError(t, server.CRDs.Wait(t.Context(), "widgets.example.com", 1))
		assert.Equal(t, time.Minute, time.Since(start))
		assert.Equal(t, []string{"widgets.example.com"}, server.handler.followed, "what serves custom resources may be behind")
		assert.Equal(t, []string{"v1.example.com"}, slices.Sorted(maps.Keys(server.CRDs.served())))
		server.delete(t.Context(), t, definitions, crd("example.com"))
		const later = 1000
		require.NoError(t, server.CRDs.wait(t.Context(), "widgets.example.com", later, true))
		assert.Equal(t, 1, server.handler.forgotten)
	})
}

// A CRD goes after its objects: the server ends the watches of a CRD that is gone.
func TestRestoreDeletesCRDLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := reststoragetest.Start(t)
		r := New(store)
		rest := reststoragetest.New(t, store, reststorage.Config{})
		servers := []*Server{{Storage: rest, Caches: noCaches{}, Prefix: "/registry"}}
		snapshot, err := r.Snapshot(t.Context(), servers)
		require.NoError(t, err)
		const crd, object = "/registry/apiextensions.k8s.io/customresourcedefinitions/things.example.com", "/registry/example.com/things/default/a"
		for _, key := range []string{crd, object} {
			_, err := rest.Client().Put(t.Context(), key, "{}")
			require.NoError(t, err)
		}
		changes, err := r.Restore(t.Context(), servers, snapshot)
		require.NoError(t, err)
		require.Len(t, changes, 2)
		assert.Equal(t, []string{object, crd}, []string{changes[0].Key, changes[1].Key})
		assert.Less(t, changes[0].Revision, changes[1].Revision)
	})
}

// Objects whose CRD goes are deleted no faster than a slow watcher takes them: the cache would
// end its watch, and the client would come back to find no CRD.
func TestRestoreDeletesForWatchers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const objects = 100
		store := reststoragetest.Start(t)
		server := startServer(t, store)
		r, servers := New(store), []*Server{server.Server}
		snapshot, err := r.Snapshot(t.Context(), servers)
		require.NoError(t, err)
		definition := crd("example.com")
		definition.Name = configMaps.GroupResource().String()
		server.create(t.Context(), t, definitions, definition)
		for i := range objects {
			server.create(t.Context(), t, configMaps, configMap(fmt.Sprint("thing-", i)))
		}
		time.Sleep(time.Minute) // the cache has seen them
		watcher, err := server.storage["configmaps"].Watch(t.Context(), "/configmaps",
			apistorage.ListOptions{ResourceVersion: "0", Predicate: apistorage.Everything, Recursive: true})
		require.NoError(t, err)
		var deleted atomic.Int32
		var reader sync.WaitGroup
		reader.Go(func() {
			for event := range watcher.ResultChan() {
				if event.Type == watch.Deleted {
					deleted.Add(1)
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
		time.Sleep(time.Minute) // the watcher has read them
		_, err = r.Restore(t.Context(), servers, snapshot)
		require.NoError(t, err)
		watcher.Stop()
		reader.Wait()
		assert.EqualValues(t, objects, deleted.Load())
	})
}

// noCaches are the caches of a server without any.
type noCaches struct{}

// Names implements Caches.
func (noCaches) Names() []string { return nil }

// Empty implements Caches.
func (noCaches) Empty() {}
