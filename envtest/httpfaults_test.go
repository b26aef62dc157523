package envtest_test

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/trace"
)

// TestLostReply loses the answer to an update: client-go tries again by itself,
// and finds that a client has written the object. It was itself.
func TestLostReply(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		h := newHTTPTest(t, cp)
		require.NoError(t, h.create("a"))
		configMaps := h.client.CoreV1().ConfigMaps("default")
		object, err := configMaps.Get(t.Context(), "a", metav1.GetOptions{})
		require.NoError(t, err)
		watch, err := configMaps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: object.ResourceVersion})
		require.NoError(t, err)
		defer watch.Stop()

		began := time.Now()
		h.bent("lose-reply http/update times=1 with=503 retry-after=2s"+onA, func() {
			object.Data = map[string]string{"value": "written"}
			_, err = configMaps.Update(t.Context(), object, metav1.UpdateOptions{})
		})
		assert.True(t, apierrors.IsConflict(err), "%v", err)
		assert.Equal(t, 2*time.Second, time.Since(began), "client-go does as Retry-After says")
		require.NoError(t, h.create("b"))
		for _, name := range []string{"a", "b"} {
			event := <-watch.ResultChan()
			assert.Equal(t, name, event.Object.(*corev1.ConfigMap).Name, "each was written once")
		}
	}, envtest.WithoutLatency())
}

// TestGetIsRetried breaks connections under a client, which asks again when it
// may, in the process as on the wire.
func TestGetIsRetried(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		h := newHTTPTest(t, cp)
		require.NoError(t, h.create("a"))
		for _, phase := range []string{"before", "after"} {
			for _, failure := range []string{"reset", "eof"} {
				h.bent("fail http/get times=1 with="+failure+" phase="+phase+onA, func() { h.value() })
			}
		}
	})
}

// TestWatchForms finds the object in every form in which a watch can tell of it,
// and in the watches of the server's own informers.
func TestWatchForms(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		h := newHTTPTest(t, cp)
		require.NoError(t, h.create("a"))
		for _, accept := range []string{
			runtimeJSON, runtimeProtobuf,
			"application/json;as=Table;v=v1;g=meta.k8s.io",
			"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
			"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
		} {
			h.openWatch(accept)
			h.told("watch/configmaps verb=modified name=default/a caller="+envtest.AdminUser, func() error {
				return h.update(t.Context(), accept)
			})
		}
		h.told("watch/namespaces verb=added name=fresh caller=system:apiserver", func() error {
			_, err := h.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "fresh"}}, metav1.CreateOptions{})
			return err
		})
		h.customResource()
	}, envtest.WithCRDs(widgetCRD()))
}

// told sees a watch about to be told of something.
func (h *httpTest) told(match string, of func() error) {
	h.Helper()
	gate, err := h.cp.Faults().Gate(match)
	require.NoError(h, err)
	defer gate.Remove()
	require.NoError(h, of())
	_, err = gate.Await(h.Context(), 1)
	require.NoError(h, err)
}

// customResource watches one of the server that serves them, which has a
// serializer of its own, and ends the watch with an error.
func (h *httpTest) customResource() {
	client := dynamic.NewForConfigOrDie(h.cp.Config()).Resource(widgets).Namespace("default")
	watch, err := client.Watch(h.Context(), metav1.ListOptions{})
	require.NoError(h, err)
	defer watch.Stop()
	h.bent("fail watch/widgets.example.com verb=added name=default/w with=410", func() {
		widget := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "w", "namespace": "default"},
		}}
		_, err := client.Create(h.Context(), widget, metav1.CreateOptions{})
		require.NoError(h, err)
		event := <-watch.ResultChan()
		assert.True(h, apierrors.IsResourceExpired(apierrors.FromObject(event.Object)), "%v", event)
		_, open := <-watch.ResultChan()
		assert.False(h, open)
	})
}

// TestOverTLS bends what a client on the wire asks for.
func TestOverTLS(t *testing.T) {
	cp := envtest.Start(t, envtest.WithListener("127.0.0.1:0"))
	config := cp.Config(envtest.Remote())
	h := &httpTest{t, cp, kubernetes.NewForConfigOrDie(config)}
	require.NoError(t, h.create("a"))
	require.NoError(t, h.update(t.Context(), "passed"))
	for _, failure := range []string{"reset", "eof"} {
		for _, phase := range []string{"before", "after"} {
			h.bent("fail http/update with="+failure+" phase="+phase+onA, func() {
				assert.ErrorContains(t, h.update(t.Context(), "failed"), "stream error")
			})
		}
		watch := h.openWatch(runtimeJSON)
		watch.sees("ADDED a")
		h.bent("fail http/watch phase=stream resource=configmaps with="+failure, func() {
			assert.NoError(t, h.update(t.Context(), "told "+failure))
			_, err := watch.next()
			assert.ErrorContains(t, err, "stream error")
		})
	}
	h.bent("fail http/update with=429"+onA, func() {
		err := h.update(t.Context(), "failed")
		assert.True(t, apierrors.IsTooManyRequests(err), "%v", err)
	})
	assert.Equal(t, "told eof", h.value())
	h.compressed(config)
	assert.NotContains(t, cp.Log(), "Timeout or abort while handling")
	assert.NotContains(t, cp.Log(), "panic")
}

// compressed watches as clients on the wire do, with the objects there are told
// first: upstream compresses that.
func (h *httpTest) compressed(config *rest.Config) {
	client, err := rest.HTTPClientFor(config)
	require.NoError(h, err)
	open := func() *rawWatch {
		url := config.Host + "/api/v1/namespaces/default/configmaps?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&fieldSelector=metadata.name%3Da"
		req, err := http.NewRequestWithContext(h.Context(), http.MethodGet, url, nil)
		require.NoError(h, err)
		req.Header.Set("Accept-Encoding", "gzip")
		response, err := client.Do(req)
		require.NoError(h, err)
		require.Equal(h, "gzip", response.Header.Get("Content-Encoding"))
		h.Cleanup(func() { _ = response.Body.Close() })
		plain, err := gzip.NewReader(response.Body)
		require.NoError(h, err)
		return &rawWatch{h, response.Body, bufio.NewReader(plain), false}
	}
	watch := open()
	watch.sees("ADDED a", "BOOKMARK ")
	h.bent("duplicate watch/configmaps verb=modified name=default/a", func() {
		require.NoError(h, h.update(h.Context(), "twice"))
		watch.sees("MODIFIED a", "MODIFIED a")
	})
	require.NoError(h, h.update(h.Context(), "once"))
	watch.sees("MODIFIED a")
	h.bent("fail watch/configmaps verb=modified name=default/a with=410", func() {
		require.NoError(h, h.update(h.Context(), "gone"))
		watch.sees("ERROR Expired")
		watch.ends(io.EOF)
	})
	h.bent("drop watch/configmaps verb=added name=default/a", func() { open().sees("BOOKMARK ") })
}

// TestCrashAtRequest ends the server before it handles an update, before it
// answers it, and before it tells a watch of it.
func TestCrashAtRequest(t *testing.T) {
	const byAdmin = " caller=" + envtest.AdminUser
	for rule, ofWatch := range map[string]bool{
		"crash http/update" + onA:                                           false,
		"crash http/update phase=after" + onA:                               false,
		"crash watch/configmaps verb=modified name=default/a" + byAdmin:     true,
		"crash http/watch phase=stream nth=2 resource=configmaps" + byAdmin: true,
	} {
		t.Run(strings.ReplaceAll(rule, "/", "-"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cp, err := envtest.Launch(t.Context(), envtest.WithFaults(rule))
				require.NoError(t, err)
				h := newHTTPTest(t, cp)
				require.NoError(t, h.create("a"))
				watch := h.openWatch(runtimeJSON)
				watch.sees("ADDED a")
				err = h.update(t.Context(), "changed")
				if ofWatch {
					watch.ends(syscall.ECONNRESET)
				} else {
					assert.ErrorIs(t, err, syscall.ECONNRESET)
				}
				assert.ErrorIs(t, h.create("b"), syscall.ECONNREFUSED)
				assert.NoError(t, cp.Err(), "a crash on purpose")
				assert.NoError(t, cp.Stop(t.Context()))
			})
		})
	}
}

// TestStopLetsGo stops a server while rules keep requests and watches.
func TestStopLetsGo(t *testing.T) {
	before := goleak.IgnoreCurrent()
	cp, err := envtest.Launch(t.Context())
	require.NoError(t, err)
	h := newHTTPTest(t, cp)
	require.NoError(t, h.create("a"))
	h.openWatch(runtimeJSON).sees("ADDED a")
	_, err = cp.Faults().Add(fault.Rule{Action: fault.Action{Kind: fault.Drop}, Match: fault.Match{Point: "http/delete", Resource: "configmaps"}})
	require.NoError(t, err)
	updates, err := cp.Faults().Gate("http/update resource=configmaps")
	require.NoError(t, err)
	events, err := cp.Faults().Gate("watch/configmaps caller=" + envtest.AdminUser)
	require.NoError(t, err)

	held, dropped := make(chan error, 1), make(chan error, 1)
	require.NoError(t, h.create("b"))
	go func() { held <- h.update(t.Context(), "held") }()
	go func() {
		dropped <- h.client.CoreV1().ConfigMaps("default").Delete(t.Context(), "a", metav1.DeleteOptions{})
	}()
	for _, gate := range []*fault.Gate{updates, events} {
		_, err := gate.Await(t.Context(), 1)
		require.NoError(t, err)
	}
	_, err = cp.Trace().Await(t.Context(), func(r trace.Record) bool {
		f, ok := r.Event.(trace.Fault)
		return ok && f.Action == "drop"
	})
	require.NoError(t, err)
	require.NoError(t, cp.Stop(t.Context()))
	assert.NoError(t, <-held, "it goes on when it is let go")
	assert.True(t, errors.Is(<-dropped, io.ErrUnexpectedEOF))
	goleak.VerifyNone(t, before)
}

// TestRequestsInTrace says how bent requests ended.
func TestRequestsInTrace(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		h := newHTTPTest(t, cp)
		require.NoError(t, h.create("a"))
		for _, rule := range []string{"fail http/update with=503", "fail http/update with=eof", "lose-reply http/update with=429"} {
			h.bent(rule+onA, func() { assert.Error(t, h.update(t.Context(), rule)) })
		}
		var seen []trace.Request
		for _, record := range cp.Trace().Records() {
			if r, ok := record.Event.(trace.Request); ok && r.Verb == "update" && r.User == envtest.AdminUser {
				seen = append(seen, trace.Request{Code: r.Code, Err: r.Err})
			}
		}
		assert.Equal(t, []trace.Request{{Code: 503}, {Err: io.EOF}, {Code: 429}}, seen)
	})
}
