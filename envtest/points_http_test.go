package envtest_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
)

func init() {
	maps.Copy(pointTests, map[string]pointTest{
		"http/<verb> before": {show: showBefore},
		"http/<verb> after":  {show: showAfter},
		"http/<verb> stream": {show: showStream},
	})
}

// httpTest is a client whose requests are bent, and what is done to them. The
// server's own requests are by another caller.
type httpTest struct {
	testing.TB
	cp     *envtest.ControlPlane
	client kubernetes.Interface
}

func newHTTPTest(t testing.TB, cp *envtest.ControlPlane) *httpTest {
	return &httpTest{t, cp, kubernetes.NewForConfigOrDie(cp.Config())}
}

// bent does something while rules apply, each of which must fire.
func (h *httpTest) bent(rules string, do func()) {
	h.Helper()
	plan, err := fault.ParsePlan("test", rules, nil)
	require.NoError(h, err)
	entries, err := h.cp.Faults().Add(plan...)
	require.NoError(h, err)
	do()
	for _, e := range entries {
		assert.NotZero(h, e.Fired(), "%s", e.Rule())
		e.Remove()
	}
}

// held starts something that a gate holds, and opens the gate after meanwhile.
func (h *httpTest) held(match string, do func() error, meanwhile func(fault.Operation)) error {
	h.Helper()
	gate, err := h.cp.Faults().Gate(match)
	require.NoError(h, err)
	defer gate.Remove()
	done := make(chan error, 1)
	ctx, cancel := context.WithCancelCause(h.Context())
	defer cancel(nil)
	go func() {
		done <- do()
		cancel(errNotHeld)
	}()
	waiting, err := gate.Await(ctx, 1)
	require.NoError(h, err)
	meanwhile(waiting[0])
	gate.Open()
	return <-done
}

var errNotHeld = errors.New("it is over, and was not held")

// create makes configmap default/NAME.
func (h *httpTest) create(name string) error {
	_, err := h.client.CoreV1().ConfigMaps("default").Create(h.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	return err
}

// update writes a value into configmap default/a, whatever is there, and asks
// once only.
func (h *httpTest) update(ctx context.Context, value string) error {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"value": value}}
	return h.client.CoreV1().RESTClient().Put().Namespace("default").Resource("configmaps").Name("a").Body(object).MaxRetries(0).Do(ctx).Error()
}

// value is what configmap default/a has.
func (h *httpTest) value() string {
	h.Helper()
	object, err := h.client.CoreV1().ConfigMaps("default").Get(h.Context(), "a", metav1.GetOptions{})
	require.NoError(h, err)
	return object.Data["value"]
}

// httpFailures are how each failure is seen by a client in the process.
var httpFailures = map[fault.Failure]func(error) bool{
	fault.TooManyRequests:    apierrors.IsTooManyRequests,
	fault.InternalError:      apierrors.IsInternalError,
	fault.ServiceUnavailable: apierrors.IsServiceUnavailable,
	fault.GatewayTimeout:     apierrors.IsTimeout,
	fault.Gone:               apierrors.IsResourceExpired,
	fault.Reset:              func(err error) bool { return errors.Is(err, syscall.ECONNRESET) },
	fault.EOF:                func(err error) bool { return errors.Is(err, io.EOF) },
}

// onA is all that the tests bend.
const onA = " resource=configmaps name=default/a caller=" + envtest.AdminUser

func showBefore(t testing.TB, cp *envtest.ControlPlane) {
	h := newHTTPTest(t, cp)
	require.NoError(t, h.create("a"))
	require.NoError(t, h.update(t.Context(), "passed"))

	require.NoError(t, h.held("http/update"+onA, func() error { return h.update(t.Context(), "held") }, func(op fault.Operation) {
		assert.Equal(t, "passed", h.value())
		assert.Equal(t, fault.Operation{
			Point: "http/update", Phase: fault.Before, Server: "apiserver-0", Resource: "configmaps", Namespace: "default", Name: "a",
			Key: "/api/v1/namespaces/default/configmaps/a", Caller: envtest.AdminUser, Occurrence: 1,
		}, op)
	}))
	assert.Equal(t, "held", h.value())

	assert.True(t, apierrors.IsTimeout(h.held("http/update"+onA, func() error { return h.update(t.Context(), "late") }, func(fault.Operation) {
		time.Sleep(2 * time.Minute)
	})), "upstream answers when a minute is over")
	assert.Equal(t, "held", h.value(), "and what it has given up is not done")

	for failure, seen := range httpFailures {
		h.bent("fail http/update with="+string(failure)+onA, func() {
			err := h.update(t.Context(), "failed")
			assert.True(t, seen(err), "%s: %v", failure, err)
		})
		assert.Equal(t, "held", h.value(), "%s", failure)
	}
	h.bent("lose-reply http/update"+onA, func() {
		assert.ErrorIs(t, h.update(t.Context(), "unheard"), syscall.ECONNRESET)
	})
	assert.Equal(t, "unheard", h.value())
	h.bent("drop http/update"+onA, func() { h.waitsForEver(func(ctx context.Context) error { return h.update(ctx, "dropped") }) })
	assert.Equal(t, "unheard", h.value())
	h.bent("cancel http/update"+onA, func() { assert.Error(t, h.update(t.Context(), "cancelled")) })
	assert.Equal(t, "unheard", h.value())
	h.bent("delay http/update by=3s"+onA, func() {
		began := time.Now()
		assert.NoError(t, h.update(t.Context(), "delayed"))
		assert.Equal(t, 3*time.Second, time.Since(began))
	})
	h.bent("duplicate http/create resource=configmaps caller="+envtest.AdminUser, func() {
		assert.True(t, apierrors.IsAlreadyExists(h.create("b")), "the answer is the second one")
	})
	h.bent("duplicate http/watch resource=configmaps", func() { h.watches(nil) })
	h.bent("lose-reply http/watch with=503 resource=configmaps", func() { h.watches(apierrors.IsServiceUnavailable) })
	h.bent("drop http/watch resource=configmaps", func() {
		h.waitsForEver(func(ctx context.Context) error {
			_, err := h.client.CoreV1().ConfigMaps("default").Watch(ctx, metav1.ListOptions{})
			return err
		})
	})
	h.subresources()
}

// waitsForEver sees a client wait longer than upstream's own limit of a minute.
func (h *httpTest) waitsForEver(do func(context.Context) error) {
	h.Helper()
	const patience = 10 * time.Minute
	ctx, cancel := context.WithTimeout(h.Context(), patience)
	defer cancel()
	began := time.Now()
	assert.ErrorIs(h, do(ctx), context.DeadlineExceeded)
	assert.Equal(h, patience, time.Since(began))
}

// watches begins a watch, which tells of configmap default/a, or fails.
func (h *httpTest) watches(fails func(error) bool) {
	h.Helper()
	watch, err := h.client.CoreV1().ConfigMaps("default").Watch(h.Context(), metav1.ListOptions{FieldSelector: "metadata.name=a"})
	if fails != nil {
		assert.True(h, fails(err), "%v", err)
		return
	}
	require.NoError(h, err)
	defer watch.Stop()
	event := <-watch.ResultChan()
	assert.Equal(h, "a", event.Object.(*corev1.ConfigMap).Name)
}

// subresources shows that they are resources of their own, and that rules find
// what is no resource by its path.
func (h *httpTest) subresources() {
	h.bent("fail http/update resource=namespaces/finalize name=default with=500\nfail http/get key=/version with=503", func() {
		ns, err := h.client.CoreV1().Namespaces().Get(h.Context(), "default", metav1.GetOptions{})
		require.NoError(h, err)
		_, err = h.client.CoreV1().Namespaces().Finalize(h.Context(), ns, metav1.UpdateOptions{})
		assert.True(h, apierrors.IsInternalError(err), "%v", err)
		_, err = h.client.Discovery().ServerVersion()
		assert.True(h, apierrors.IsServiceUnavailable(err), "%v", err)
	})
}

func showAfter(t testing.TB, cp *envtest.ControlPlane) {
	h := newHTTPTest(t, cp)
	require.NoError(t, h.create("a"))
	require.NoError(t, h.held("http/update phase=after"+onA, func() error { return h.update(t.Context(), "held") }, func(op fault.Operation) {
		assert.Equal(t, "held", h.value(), "it is done already")
		assert.Equal(t, fault.After, op.Phase)
	}))
	for failure, seen := range httpFailures {
		h.bent("fail http/update phase=after with="+string(failure)+onA, func() {
			err := h.update(t.Context(), string(failure))
			assert.True(t, seen(err), "%s: %v", failure, err)
		})
		assert.Equal(t, string(failure), h.value())
	}
	h.bent("drop http/update phase=after"+onA, func() {
		h.waitsForEver(func(ctx context.Context) error { return h.update(ctx, "dropped") })
	})
	assert.Equal(t, "dropped", h.value())
	h.bent("cancel http/update phase=after"+onA, func() { assert.NoError(t, h.update(t.Context(), "cancelled")) })
	assert.Equal(t, "cancelled", h.value())

	h.bent("fail http/watch phase=after resource=configmaps with=429", func() { h.watches(apierrors.IsTooManyRequests) })
	h.bent("cancel http/watch phase=after resource=configmaps", func() {
		watch := h.openWatch(runtimeJSON)
		_, err := watch.next()
		assert.Equal(t, io.EOF, err, "the watch ends as soon as it has begun")
	})
}

func showStream(t testing.TB, cp *envtest.ControlPlane) {
	h := newHTTPTest(t, cp)
	require.NoError(t, h.create("a"))
	h.streamOfWatch()
	h.streamOfList()
}

func (h *httpTest) streamOfWatch() {
	const parts = "http/watch phase=stream resource=configmaps caller=" + envtest.AdminUser
	watch := h.openWatch(runtimeJSON)
	watch.sees("ADDED a")
	var read string
	require.NoError(h, h.held(parts, func() (err error) {
		if err := h.update(h.Context(), "held"); err != nil {
			return err
		}
		read, err = watch.next()
		return err
	}, func(op fault.Operation) {
		assert.Empty(h, read)
		assert.Equal(h, "held", h.value())
		assert.Equal(h, "/api/v1/namespaces/default/configmaps", op.Key)
	}))
	assert.Equal(h, "MODIFIED a", read)
	h.bent("drop "+parts+" times=1", func() {
		assert.NoError(h, h.create("dropped"))
		assert.NoError(h, h.create("told"))
		watch.sees("ADDED told")
	})
	for _, end := range []struct {
		rule string
		is   error
	}{
		{"fail " + parts + " with=reset", syscall.ECONNRESET},
		{"fail " + parts + " with=eof", io.ErrUnexpectedEOF},
		{"cancel " + parts, io.EOF},
	} {
		watch := h.openWatch(runtimeJSON)
		watch.sees("ADDED a", "ADDED dropped", "ADDED told")
		h.bent(end.rule, func() {
			assert.NoError(h, h.update(h.Context(), end.rule))
			_, err := watch.next()
			assert.ErrorIs(h, err, end.is, end.rule)
		})
	}
}

// streamOfList breaks a list that is too long for one part.
func (h *httpTest) streamOfList() {
	large := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "large-"}, Data: map[string]string{"value": strings.Repeat("x", 100_000)}}
	for range 20 {
		_, err := h.client.CoreV1().ConfigMaps("default").Create(h.Context(), large, metav1.CreateOptions{})
		require.NoError(h, err)
	}
	const parts = "http/list phase=stream resource=configmaps caller=" + envtest.AdminUser
	list := func() error {
		_, err := h.client.CoreV1().RESTClient().Get().Resource("configmaps").SetHeader("Accept", runtimeJSON).MaxRetries(0).DoRaw(h.Context())
		return err
	}
	assert.NoError(h, h.held(parts, list, func(fault.Operation) {}))
	h.bent("fail "+parts+" with=reset nth=2", func() { assert.ErrorIs(h, list(), syscall.ECONNRESET) })
}
