package envtest_test

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/pool"
)

// running is what a pool is opened for.
type running func()

// Run implements pool.TestingM.
func (r running) Run() int { r(); return 0 }

// TestPooled leaves nothing behind. Other tests have no pool.
func TestPooled(t *testing.T) {
	before := goleak.IgnoreCurrent()
	code := pool.Tests(running(func() {
		t.Run("fresh", testPooledIsFresh)
		t.Run("not pooled", testNotPooled)
	})).Run()
	assert.Zero(t, code)
	goleak.VerifyNone(t, before)
}

var kinds atomic.Int64

// inTurn runs tests one after another, on control planes of a kind that no other test has.
func inTurn(t *testing.T, tests ...func(t *testing.T, cp *envtest.ControlPlane)) (took []*envtest.ControlPlane) {
	t.Helper()
	kind := envtest.WithTimeouts(time.Minute+time.Duration(kinds.Add(1)), 0)
	for _, test := range tests {
		t.Run("", func(t *testing.T) {
			cp := envtest.Start(t, kind, envtest.WithCRDs(widgetCRD()))
			took = append(took, cp)
			test(t, cp)
		})
	}
	return took
}

// testPooledIsFresh has a test leave behind what it can, and looks for it in the next.
func testPooledIsFresh(t *testing.T) {
	var left *kubernetes.Clientset
	var watching watch.Interface
	planes := inTurn(t, func(t *testing.T, cp *envtest.ControlPlane) {
		left = kubernetes.NewForConfigOrDie(cp.Config())
		create(t, cp, "left")
		require.NoError(t, left.RbacV1().ClusterRoles().Delete(t.Context(), "view", metav1.DeleteOptions{}))
		require.NoError(t, left.CoreV1().RESTClient().Delete().
			AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com").Do(t.Context()).Error())
		var err error
		watching, err = left.CoreV1().Secrets("").Watch(context.WithoutCancel(t.Context()), metav1.ListOptions{})
		require.NoError(t, err)
		_, err = cp.Faults().Inject("fail http/get resource=configmaps with=500 optional")
		require.NoError(t, err)
		_, err = cp.Webhooks().Serve(http.NotFoundHandler(), "left.example.com")
		require.NoError(t, err)
		assert.Equal(t, "client-1", cp.NewClient().Name())
	}, func(t *testing.T, cp *envtest.ControlPlane) {
		assert.Empty(t, cp.Trace().Records(), "the trace of another test")
		assert.Empty(t, cp.Log(), "the log of another test")
		assert.Empty(t, cp.Faults().Rules(), "rules of another test")
		assert.Equal(t, "client-1", cp.NewClient().Name())
		client := kubernetes.NewForConfigOrDie(cp.Config())
		_, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "left", metav1.GetOptions{})
		assert.True(t, apierrors.IsNotFound(err), "an object of another test: %v", err)
		_, err = client.RbacV1().ClusterRoles().Get(t.Context(), "view", metav1.GetOptions{})
		assert.NoError(t, err, "what another test has deleted")
		assert.NoError(t, client.CoreV1().RESTClient().Get().AbsPath("/apis/example.com/v1/widgets").Do(t.Context()).Error())
		assertEnds(t, watching)
		_, err = left.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
		assert.True(t, apierrors.IsUnauthorized(err), "a client of another test: %v", err)
		_, there, _ := cp.Webhooks().Dial(t.Context(), "left.example.com:443")
		assert.False(t, there, "the webhook of another test")
	})
	assert.True(t, planes[0] == planes[1], "the second test has a control plane of its own")
}

// assertEnds receives nothing from a watch but, at most, why it has ended.
func assertEnds(t *testing.T, w watch.Interface) {
	t.Helper()
	tooLong := time.After(10 * time.Second)
	for {
		select {
		case event, open := <-w.ResultChan():
			if !open {
				return
			}
			assert.Equal(t, watch.Error, event.Type, "an event for the watch of another test")
		case <-tooLong:
			t.Fatal("the watch of another test goes on")
		}
	}
}

// testNotPooled ends tests in such a way that no other has their control planes.
func testNotPooled(t *testing.T) {
	parent := t
	for name, spoil := range map[string]func(t *testing.T, cp *envtest.ControlPlane){
		"stopped": func(t *testing.T, cp *envtest.ControlPlane) { require.NoError(t, cp.Stop(t.Context())) },
		"crashed": func(t *testing.T, cp *envtest.ControlPlane) { require.NoError(t, cp.Servers()[0].Crash(t.Context())) },
		"restarted": func(t *testing.T, cp *envtest.ControlPlane) {
			require.NoError(t, cp.Servers()[0].Crash(t.Context()))
			require.NoError(t, cp.Servers()[0].Restart(t.Context()))
		},
		"component": func(t *testing.T, cp *envtest.ControlPlane) {
			component, err := cp.NewComponent("left", func(error) {})
			require.NoError(t, err)
			parent.Cleanup(component.Leave)
		},
	} {
		t.Run(name, func(t *testing.T) {
			planes := inTurn(t, spoil, func(*testing.T, *envtest.ControlPlane) {})
			assert.True(t, planes[0] != planes[1], "the control plane of another test")
		})
	}
	var cp, other *envtest.ControlPlane
	t.Run("options", func(t *testing.T) {
		cp = envtest.Start(t)
		assert.NotSame(t, cp, envtest.Start(t), "one that another test has")
	})
	t.Run("other options", func(t *testing.T) {
		other = envtest.Start(t, envtest.WithFlags("--v=1"))
		assert.True(t, cp != other, "the control plane of other options")
	})
	t.Run("failed", func(t *testing.T) {
		kind := envtest.WithTimeouts(time.Minute+time.Duration(kinds.Add(1)), 0)
		fails := &recorder{TB: t, context: t.Context()}
		failed := envtest.Start(fails, kind)
		fails.Error("on purpose")
		fails.end()
		assert.True(t, failed != envtest.Start(t, kind), "the control plane of a test that has failed")
	})
	t.Run("crashed while parked", func(t *testing.T) {
		kind := envtest.WithTimeouts(time.Minute+time.Duration(kinds.Add(1)), 0)
		ends := &recorder{TB: t, context: t.Context()}
		parked := envtest.Start(ends, kind)
		ends.end()
		require.NoError(t, parked.Servers()[0].Crash(t.Context()))
		assert.True(t, parked != envtest.Start(t, kind), "a control plane that does not run")
	})
	t.Run("unfired rule", func(t *testing.T) {
		kind := envtest.WithTimeouts(time.Minute+time.Duration(kinds.Add(1)), 0)
		fails := &recorder{TB: t, context: t.Context()}
		failed := envtest.Start(fails, kind)
		addRule(t, failed, "fail http/get resource=configmaps with=500")
		fails.end()
		assert.Len(t, fails.errors, 1)
		assert.True(t, failed != envtest.Start(t, kind), "the control plane of a test whose rule has not fired")
	})
	t.Run("rules", func(t *testing.T) {
		other = envtest.Start(t, envtest.WithFaults("fail http/get resource=configmaps with=500 optional"))
		assert.True(t, cp != other, "the control plane of another test")
	})
}

// BenchmarkStart is a test's share of control planes: one of its own, and one from the pool.
func BenchmarkStart(b *testing.B) {
	pool.Tests(running(func() {
		for name, opts := range map[string][]envtest.Option{"pooled": nil, "own": {envtest.WithLog(io.Discard)}} {
			b.Run(name, func(b *testing.B) {
				for b.Loop() {
					t := &recorder{TB: b, context: b.Context()}
					create(t, envtest.Start(t, opts...), "a")
					t.end()
				}
			})
		}
	})).Run()
}
