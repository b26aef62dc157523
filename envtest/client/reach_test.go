package client

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest/client/internal/session"
)

// TestGate has a write wait until the test lets it go, at a gate of its own and at that of a rule.
func TestGate(t *testing.T) {
	const write = "store/put resource=configmaps name=default/a"
	alone(t)
	for name, opts := range map[string][]Option{"a gate": nil, "a rule's": {WithFaults("hold " + write)}} {
		t.Run(name, func(t *testing.T) { passGate(t, Start(t, opts...), write) })
	}
}

func passGate(t *testing.T, cp *ControlPlane, write string) {
	t.Helper()
	gate, err := cp.Gate(t.Context(), write)
	require.NoError(t, err)
	created := make(chan error, 1)
	go func() { created <- create(t, cp.Config(), "a") }()
	waiting, err := gate.Await(t.Context(), 1)
	require.NoError(t, err)
	require.Len(t, waiting, 1)
	assert.Contains(t, waiting[0], "default/a")
	settled, err := cp.Settle(t.Context())
	require.NoError(t, err)
	assert.Equal(t, waiting, settled.Held)
	require.Empty(t, created)
	require.NoError(t, gate.Open(t.Context()))
	assert.NoError(t, <-created)
	assert.NoError(t, gate.Remove(t.Context()))
}

// TestWhatIsNotAGate says so, and the server goes on.
func TestWhatIsNotAGate(t *testing.T) {
	alone(t)
	cp := Start(t)
	rule, err := cp.Inject(t.Context(), "delay http/create resource=configmaps by=1ms optional")
	require.NoError(t, err)
	assert.ErrorContains(t, (&Gate{of: cp, id: rule.id}).Open(t.Context()), "1 is nothing of this control plane that can do that")
	_, err = (&Rule{of: cp, id: 2}).Fired(t.Context())
	assert.ErrorContains(t, err, "2 is nothing")
	assert.NoError(t, create(t, cp.Config(), "a"))
}

// TestGoneWhileItWaits is a test that dies while it waits at a gate: its control plane is given
// back, and the server ends, which alone checks.
func TestGoneWhileItWaits(t *testing.T) {
	alone(t)
	cp, err := Launch(t.Context())
	require.NoError(t, err)
	gate, err := cp.Gate(t.Context(), "store/put resource=configmaps name=default/a")
	require.NoError(t, err)
	await := cp.calls.Go(session.Await, session.Awaited{Gate: gate.id, N: 1}, &[]string{}, nil)
	_, err = cp.Settle(t.Context()) // so the server has read what comes before
	require.NoError(t, err)
	require.NoError(t, cp.calls.Close())
	assert.Error(t, (<-await.Done).Error)
}

// TestSnapshot goes back to what was there.
func TestSnapshot(t *testing.T) {
	alone(t)
	cp := Start(t)
	require.NoError(t, create(t, cp.Config(), "before"))
	snapshot, err := cp.Snapshot(t.Context())
	require.NoError(t, err)
	require.NoError(t, create(t, cp.Config(), "after"))
	require.NoError(t, cp.Restore(t.Context(), snapshot))
	assert.True(t, apierrors.IsAlreadyExists(create(t, cp.Config(), "before")))
	assert.NoError(t, create(t, cp.Config(), "after"))
	assert.Error(t, cp.Restore(t.Context(), &Snapshot{}), "a snapshot of none")
}

// TestCompact has a list of an old revision end with 410.
func TestCompact(t *testing.T) {
	alone(t)
	cp := Start(t, WithFlags("--watch-cache=false"))
	configMaps := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1().ConfigMaps("default")
	before, err := configMaps.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.NoError(t, create(t, cp.Config(), "a"))
	require.NoError(t, create(t, cp.Config(), "b"))
	require.NoError(t, cp.Compact(t.Context()))
	old := metav1.ListOptions{ResourceVersion: before.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact}
	_, err = configMaps.List(t.Context(), old)
	assert.True(t, apierrors.IsResourceExpired(err), "%v", err)
}

// TestTrace has what this test has done, and not what the one before it has.
func TestTrace(t *testing.T) {
	alone(t)
	traces := map[string]string{}
	for _, name := range []string{"first", "second"} {
		t.Run(name, func(t *testing.T) {
			cp := Start(t)
			require.NoError(t, create(t, cp.Config(), "of-"+name))
			_, err := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1().ConfigMaps("default").Get(t.Context(), "of-"+name, metav1.GetOptions{})
			require.NoError(t, err)
			for _, form := range []TraceForm{TraceText, TraceJSON} {
				trace, err := cp.Trace(t.Context(), form)
				require.NoError(t, err)
				assert.True(t, strings.Contains(trace, "of-"+name), form)
				traces[name] = trace
			}
			_, err = cp.Trace(t.Context(), "verse")
			assert.ErrorContains(t, err, "verse")
		})
	}
	assert.True(t, strings.HasPrefix(traces["first"], "{"), "JSON")
	assert.False(t, strings.Contains(traces["second"], "of-first"), "the test before")
}

// TestArguments starts what a program's arguments ask for, or says why not.
func TestArguments(t *testing.T) {
	alone(t)
	cp := Start(t, WithArguments("--authorization-mode=AlwaysAllow"))
	jane, err := cp.AddUser(t.Context(), "jane")
	require.NoError(t, err)
	assert.NoError(t, create(t, jane, "a"), "or the arguments were not honoured")
	for want, opts := range map[string][]Option{
		"--etcd-servers can't be honoured": {WithArguments("--etcd-servers=http://127.0.0.1:2379")},
		"unknown flag: --snow":             {WithArguments("--snow")},
		"WithFlags beside WithArguments":   {WithArguments("--v=2"), WithFlags("--v=2")},
	} {
		_, err := Launch(t.Context(), opts...)
		assert.ErrorContains(t, err, want)
	}
}
