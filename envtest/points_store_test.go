package envtest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
)

func init() {
	pointTests["store/range"] = pointTest{show: showRange, onEtcd: true}
	pointTests["store/list"] = pointTest{show: showList, onEtcd: true}
	pointTests["store/put"] = pointTest{show: showPut, onEtcd: true}
	pointTests["store/delete"] = pointTest{show: showDelete, onEtcd: true}
	pointTests["store/lease-grant"] = pointTest{
		show: showLeaseGrant, onEtcd: true, opts: []envtest.Option{
			envtest.WithFlags("--lease-reuse-duration-seconds=0"),
			// The server's own Events, of a repaired ClusterIP for one, get no lease that would be counted.
			envtest.WithFaults("fail http/create resource=events.events.k8s.io caller=system:apiserver with=503 optional"),
		},
	}
}

// storeCall is a request that leads to one call of the store.
type storeCall struct {
	match string          // of rules that are about this call only
	want  fault.Operation // its identity
	do    func(context.Context) error
	// effects counts what the calls have done to the store; nil if they do
	// nothing to it.
	effects func() int
}

// show bends the call in every way that a caller can tell.
func (c *storeCall) show(t testing.TB, cp *envtest.ControlPlane) {
	if c.effects == nil {
		c.effects = func() int { return 0 }
	}
	happens := func(what string) int { // as often as nothing prevents
		before := c.effects()
		require.NoError(t, c.do(t.Context()), what)
		return c.effects() - before
	}
	once := happens("passing")

	gate := c.hold(t, cp)
	before, done := c.effects(), goDo(t.Context(), c.do)
	waiting := awaitHeld(t, gate)
	c.want.Server, c.want.Phase, c.want.Caller = "apiserver-0", fault.Before, envtest.AdminUser
	waiting[0].Occurrence, waiting[0].Key = 0, ""
	assert.Equal(t, c.want, waiting[0])
	assert.Equal(t, before, c.effects(), "held")
	gate.Release(1)
	assert.NoError(t, <-done, "released")
	assert.Equal(t, before+once, c.effects(), "released")
	gate.Remove()

	for _, bent := range []struct {
		action, with, message string
		effects               int
	}{
		{"fail", "with=unavailable", "injected at " + c.want.Point, 0},
		{"fail", "with=leader-changed", "etcdserver: leader changed", 0},
		{"lose-reply", "with=request-timed-out", "etcdserver: request timed out", once},
		{"cancel", "", "context canceled", 0},
	} {
		before := c.effects()
		remove := addRule(t, cp, fmt.Sprint(bent.action, " ", c.want.Point, " ", c.match, " ", bent.with))
		assert.ErrorContains(t, c.do(t.Context()), bent.message, bent.action)
		assert.Equal(t, before+bent.effects, c.effects(), bent.action)
		remove()
	}
	c.showDrop(t, cp)
	assert.Equal(t, once, happens("afterwards"))
}

// showDrop loses the call on its way: whoever waits for the answer has to give up.
func (c *storeCall) showDrop(t testing.TB, cp *envtest.ControlPlane) {
	gate := c.hold(t, cp)
	remove := addRule(t, cp, fmt.Sprint("drop ", c.want.Point, " ", c.match))
	ctx, giveUp := context.WithCancel(t.Context())
	before, done := c.effects(), goDo(ctx, c.do)
	awaitHeld(t, gate)
	gate.Release(1)
	giveUp()
	assert.ErrorIs(t, <-done, context.Canceled)
	assert.Equal(t, before, c.effects(), "dropped")
	remove()
	gate.Remove()
}

func (c *storeCall) hold(t testing.TB, cp *envtest.ControlPlane) *fault.Gate {
	t.Helper()
	gate, err := cp.Faults().Gate(c.want.Point + " " + c.match)
	require.NoError(t, err)
	return gate
}

func showRange(t testing.TB, cp *envtest.ControlPlane) {
	create(t, cp, "a")
	call := storeCall{
		match: "resource=configmaps name=default/a",
		want:  fault.Operation{Point: "store/range", Resource: "configmaps", Namespace: "default", Name: "a"},
		do: func(ctx context.Context) error {
			_, err := core(cp).ConfigMaps("default").Get(ctx, "a", metav1.GetOptions{})
			return err
		},
	}
	call.show(t, cp)
}

func showList(t testing.TB, cp *envtest.ControlPlane) {
	call := storeCall{
		match: "resource=events caller=" + envtest.AdminUser,
		want:  fault.Operation{Point: "store/list", Resource: "events", Namespace: "default"},
		do: func(ctx context.Context) error { // events have no watch cache
			_, err := core(cp).Events("default").List(ctx, metav1.ListOptions{})
			return err
		},
	}
	call.show(t, cp)
	call.do = func(ctx context.Context) error {
		_, err := core(cp).Events("default").List(ctx, metav1.ListOptions{Limit: 1})
		return err
	}
	call.show(t, cp)
}

func showPut(t testing.TB, cp *envtest.ControlPlane) {
	const name = "put" // of its own, as other tests expect the first update of theirs
	create(t, cp, name)
	client := core(cp).ConfigMaps("default")
	n := 0
	call := storeCall{
		match: "resource=configmaps name=default/" + name,
		want:  fault.Operation{Point: "store/put", Resource: "configmaps", Namespace: "default", Name: name},
		do: func(ctx context.Context) error {
			awaitCache(t, cp, name)
			n++
			update := configMap(name)
			update.Data = map[string]string{"n": fmt.Sprint(n)}
			_, err := client.Update(ctx, update, metav1.UpdateOptions{})
			return err
		},
		effects: func() int { return versionOf(t, cp, "/registry/configmaps/default/"+name) },
	}
	call.show(t, cp)

	remove := addRule(t, cp, "duplicate store/put resource=configmaps name=default/twice times=1")
	_, err := client.Create(t.Context(), configMap("twice"), metav1.CreateOptions{})
	assert.True(t, apierrors.IsAlreadyExists(err), "the second of two writes finds the first: %v", err)
	assert.Equal(t, 1, versionOf(t, cp, "/registry/configmaps/default/twice"))
	remove()
}

func showDelete(t testing.TB, cp *envtest.ControlPlane) {
	client := core(cp).ConfigMaps("default")
	const key = "/registry/configmaps/default/a"
	call := storeCall{
		match: "resource=configmaps name=default/a",
		want:  fault.Operation{Point: "store/delete", Resource: "configmaps", Namespace: "default", Name: "a"},
		do: func(ctx context.Context) error {
			if _, err := client.Create(t.Context(), configMap("a"), metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
				return err
			}
			awaitCache(t, cp, "a")
			return client.Delete(ctx, "a", metav1.DeleteOptions{})
		},
		effects: func() int { return deletionsOf(t, cp, key) },
	}
	call.show(t, cp)

	create(t, cp, "a")
	awaitCache(t, cp, "a")
	remove := addRule(t, cp, "duplicate store/delete resource=configmaps name=default/a times=1")
	err := client.Delete(t.Context(), "a", metav1.DeleteOptions{})
	assert.True(t, apierrors.IsNotFound(err), "the second of two deletions finds nothing: %v", err)
	remove()
}

func showLeaseGrant(t testing.TB, cp *envtest.ControlPlane) {
	n := 0
	call := storeCall{
		match: "resource=events",
		want:  fault.Operation{Point: "store/lease-grant", Resource: "events"},
		do: func(ctx context.Context) error {
			n++
			return createEvent(ctx, cp, fmt.Sprint("e", n))
		},
		effects: func() int {
			client := storeClient(t, cp)
			leases, err := client.Leases(t.Context())
			require.NoError(t, err)
			n := 0
			for _, lease := range leases.Leases {
				left, err := client.TimeToLive(t.Context(), lease.ID)
				require.NoError(t, err)
				if left.GrantedTTL == 3600 { // an Event's; the server's own are short
					n++
				}
			}
			return n
		},
	}
	call.show(t, cp)
}

// goDo starts a request, and returns where its error will be.
func goDo(ctx context.Context, do func(context.Context) error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	return done
}

// storeClient is a client of the store itself.
func storeClient(t testing.TB, cp *envtest.ControlPlane) *clientv3.Client {
	t.Helper()
	client, err := cp.Store().Client()
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client.Client
}

// versionOf is how often a key has been written since it was created.
func versionOf(t testing.TB, cp *envtest.ControlPlane, key string) int {
	t.Helper()
	got, err := storeClient(t, cp).Get(t.Context(), key)
	require.NoError(t, err)
	if len(got.Kvs) == 0 {
		return 0
	}
	return int(got.Kvs[0].Version)
}

// deletionsOf is how often a key has been deleted.
func deletionsOf(t testing.TB, cp *envtest.ControlPlane, key string) (n int) {
	t.Helper()
	for _, event := range historyOf(t, cp, key) {
		if event.Type == clientv3.EventTypeDelete {
			n++
		}
	}
	return n
}

// historyOf is what has become of a key, from the store's first revision on.
func historyOf(t testing.TB, cp *envtest.ControlPlane, key string) (events []*clientv3.Event) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	client := storeClient(t, cp)
	end, err := client.Put(ctx, "/end-of-history", "") // of no resource
	require.NoError(t, err)
	for response := range client.Watch(ctx, "/", clientv3.WithPrefix(), clientv3.WithRev(1)) {
		require.NoError(t, response.Err())
		for _, event := range response.Events {
			switch {
			case event.Kv.ModRevision == end.Header.Revision:
				return events
			case string(event.Kv.Key) == key:
				events = append(events, event)
			}
		}
	}
	require.Fail(t, "the store ended the watch")
	return nil
}
