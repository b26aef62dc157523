package envtest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"snowglobe.test/envtest"
	"snowglobe.test/internal/pages"
)

// hangInHook is a hook that does not end with its server, but with the test.
func hangInHook(end <-chan struct{}) { <-end }

// A hook that hangs is named by Stop: what it is in, and who created its goroutine.
func TestStopNamesHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		defer close(end)
		cp := launched(t, envtest.WithTimeouts(0, 20*time.Second), envtest.WithPostStartHook("hanging", func(context.Context, *rest.Config) error {
			go hangInHook(end)
			return nil
		}))
		err := cp.Stop(t.Context())
		require.ErrorContains(t, err, fmt.Sprintf("goroutines of %s-apiserver-0 have not ended (1 in all):\n     1 in envtest_test.hangInHook (ends_test.go:", cp.Name()))
		assert.ErrorContains(t, err, "created by envtest_test.TestStopNamesHook.func1.1")
		pages.Troubleshooting(t, "..", err.Error())
	})
}

// hangingBody is the body of a request that does not end until the test does.
type hangingBody struct{ end <-chan struct{} }

func (b hangingBody) Read([]byte) (int, error) {
	<-b.end
	return 0, io.EOF
}

// hang sends a request that does not end until the test does.
func hang(t *testing.T, config *rest.Config, end <-chan struct{}) {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, config.Host+"/api/v1/namespaces/default/configmaps", hangingBody{end})
	require.NoError(t, err)
	go func() {
		if response, err := client.Do(request); err == nil {
			_ = response.Body.Close()
		}
	}()
}

// A request that hangs keeps a server from terminating, and is named.
func TestStopNamesRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		cp := launched(t, envtest.WithTimeouts(0, 5*time.Second))
		hang(t, cp.Config(), end)
		time.Sleep(time.Second)
		time.AfterFunc(4*time.Second, func() { close(end) }) // when Stop has begun to use force
		err := cp.Stop(t.Context())
		require.ErrorContains(t, err, "apiserver-0 has not terminated: not within 3.75s, three quarters of what it has (WithTimeouts changes that); its goroutines are at work (")
		assert.ErrorContains(t, err, "in envtest_test.hangingBody.Read (ends_test.go:")
		assert.NotContains(t, err.Error(), "have not ended")
		pages.Troubleshooting(t, "..", err.Error())
	})
}

// Stop takes no longer than its limit, whatever keeps a server, and leaves each of them a part.
func TestStopLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 8 * time.Second
		cp := launched(t, envtest.WithTimeouts(0, limit), envtest.WithReplicas(2))
		end := make(chan struct{})
		for _, server := range cp.Servers() {
			hang(t, server.Config(), end)
		}
		time.Sleep(time.Second)
		time.AfterFunc(limit-time.Second/2, func() { close(end) }) // when Stop has begun to use force on the last
		began := time.Now()
		err := cp.Stop(t.Context())
		assert.LessOrEqual(t, time.Since(began), limit)
		for _, server := range cp.Servers() {
			assert.ErrorContains(t, err, server.Name()+" has not terminated: not within 3s, ")
		}
	})
}

// Stop ends what waits for the control plane, and does not wait for it.
func TestStopEndsSettle(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		settle(t, cp)
		neverEnding(t, cp)
		gave := make(chan error)
		go func() {
			_, err := cp.Settle(t.Context())
			gave <- err
		}()
		time.Sleep(5 * time.Second)
		began := time.Now()
		stopped := stopping(t, cp)
		err := <-gave
		assert.ErrorContains(t, err, "the control plane has not settled; POST /api/v1/namespaces/default/configmaps is in flight; it was given up: the control plane was stopped")
		assert.Zero(t, time.Since(began))
		assert.NoError(t, <-stopped) // when the server has had enough of the request
	})
}

// Reset and Snapshot wait for the aggregator, and end with Stop, too.
func TestStopEndsReset(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		settle(t, cp)
		inject(t, cp, "freeze cache/customresourcedefinitions.apiextensions.k8s.io")
		gave := make(chan error, 2)
		_, err := apiextensionsclient.NewForConfigOrDie(cp.Config()).ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), widgetCRD(), metav1.CreateOptions{})
		require.NoError(t, err)
		go func() { gave <- cp.Reset(t.Context()) }()
		go func() {
			_, err := cp.Snapshot(t.Context())
			gave <- err
		}()
		time.Sleep(5 * time.Second)
		require.NoError(t, cp.Stop(t.Context()))
		for range 2 {
			err := <-gave
			assert.ErrorContains(t, err, "the control plane was stopped")
			assert.ErrorContains(t, err, "the CRD informer has seen 0 CRDs, the store has 1")
		}
	})
}

// writeOn writes until the context ends.
func writeOn(ctx context.Context, cp *envtest.ControlPlane) {
	configMaps := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1().ConfigMaps("default")
	for ctx.Err() == nil {
		_, _ = configMaps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "written-"}}, metav1.CreateOptions{})
	}
}

// Whenever the time of Settle is up, it says in which step, or what is late.
func TestSettleSaysWhy(t *testing.T) {
	enough := errors.New("enough")
	try := func(t *testing.T, cp *envtest.ControlPlane) (gaveUp int) {
		t.Helper()
		for limit := time.Duration(0); limit < 200*time.Millisecond; limit = 5*limit + time.Nanosecond {
			ctx, cancel := context.WithTimeoutCause(t.Context(), limit, enough)
			_, err := cp.Settle(ctx)
			cancel()
			if err != nil {
				gaveUp++
				assert.ErrorIs(t, err, enough)
				assert.Regexp(t, `^the control plane has not settled; .{10,}: .*enough`, err.Error())
				pages.Troubleshooting(t, "..", err.Error())
			}
		}
		return gaveUp
	}
	t.Run("virtual time", func(t *testing.T) {
		envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
			done := make(chan struct{})
			go func() { defer close(done); burst(t, cp, 200) }()
			assert.NotZero(t, try(t, cp))
			<-done
		})
	})
	t.Run("real time", func(t *testing.T) {
		cp := envtest.Start(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan struct{})
		go func() { defer close(done); writeOn(ctx, cp) }()
		assert.NotZero(t, try(t, cp))
		cancel()
		<-done
	})
}

// TestReadableStacks looks at the stacks of all watches that wait for an event, the server's own and
// clients': the runtime prints a hundred frames of each, and leak detectors panic where it leaves some out.
func TestReadableStacks(t *testing.T) {
	cp := envtest.Start(t, envtest.WithCRDs(widgetCRD()))
	addRule(t, cp, "delay http/get resource=secrets by=1ms optional") // its being there takes frames too
	for _, path := range []string{"/apis/example.com/v1/widgets", "/api/v1/configmaps"} {
		stream, err := core(cp).RESTClient().Get().AbsPath(path).Param("watch", "true").Stream(t.Context())
		require.NoError(t, err)
		defer func() { _ = stream.Close() }()
	}
	stacks, watches := make([]byte, 64<<20), 0
	for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		header, frames, _ := strings.Cut(stack, "\n")
		if strings.HasPrefix(frames, "k8s.io/apiserver/pkg/endpoints/handlers.(*WatchServer).HandleHTTP(") {
			watches++
			assert.False(t, strings.Contains(frames, "frames elided"), "%s has more than a hundred frames", header)
		}
	}
	assert.Greater(t, watches, 30, "the server has not so many watches of its own")
}
