package envtest_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/trace"
)

func init() {
	pointTests["webhook/<webhook> create"] = pointTest{show: showWebhook, realTime: true}
	pointTests["apiservice/<apiservice> get"] = pointTest{show: showAPIService, realTime: true}
	pointTests["egress/<network>"] = pointTest{show: showEgress, realTime: true}
}

// outsider is a server that the API server calls.
type outsider struct {
	*httptest.Server
	calls atomic.Int64
}

func newOutsider(t testing.TB, handler http.HandlerFunc) *outsider {
	o := &outsider{}
	o.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		handler(w, req)
		o.calls.Add(1)
	}))
	t.Cleanup(o.Close)
	return o
}

// during is how often the server is called while something is done.
func (o *outsider) during(do func()) int64 {
	before := o.calls.Load()
	do()
	return o.calls.Load() - before
}

// review allows whatever is asked of a webhook.
func review(w http.ResponseWriter, req *http.Request) {
	var asked admissionv1.AdmissionReview
	if json.NewDecoder(req.Body).Decode(&asked) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	asked.Response = &admissionv1.AdmissionResponse{UID: asked.Request.UID, Allowed: true}
	_ = json.NewEncoder(w).Encode(asked)
}

// webhooks are names of webhooks that have one address.
var webhooks = []string{"policy.example.com", "quota.example.com"}

// installWebhooks has configmaps of the label reviewed=yes reviewed, and waits
// until they are.
func installWebhooks(h *httpTest, reviewer *outsider) {
	h.Helper()
	rule := admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
	}
	none, seconds := admissionregistrationv1.SideEffectClassNone, int32(1)
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "reviews"}}
	for _, name := range webhooks {
		configuration.Webhooks = append(configuration.Webhooks, admissionregistrationv1.ValidatingWebhook{
			Name: name, Rules: []admissionregistrationv1.RuleWithOperations{rule}, SideEffects: &none, TimeoutSeconds: &seconds,
			AdmissionReviewVersions: []string{"v1"}, ObjectSelector: &metav1.LabelSelector{MatchLabels: reviewed},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL:      &reviewer.URL,
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: reviewer.Certificate().Raw}),
			},
		})
	}
	_, err := h.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(h.Context(), configuration, metav1.CreateOptions{})
	require.NoError(h, err)
	for i := 0; reviewer.during(func() { require.NoError(h, h.createReviewed("early-"+strconv.Itoa(i))) }) == 0; i++ {
	}
}

var reviewed = map[string]string{"reviewed": "yes"}

// createReviewed makes configmap default/NAME, of which webhooks are told.
func (h *httpTest) createReviewed(name string) error {
	_, err := h.client.CoreV1().ConfigMaps("default").Create(h.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: reviewed}}, metav1.CreateOptions{})
	return err
}

func showWebhook(t testing.TB, cp *envtest.ControlPlane) {
	h := newHTTPTest(t, cp)
	reviewer := newOutsider(t, review)
	installWebhooks(h, reviewer)
	const policy = "webhook/policy.example.com"

	calls := reviewer.during(func() {
		assert.NoError(t, h.held(policy, func() error { return h.createReviewed("a") }, func(op fault.Operation) {
			assert.Equal(t, fault.Operation{
				Point: policy, Phase: fault.Before, Server: "apiserver-0", Verb: "create", Resource: "configmaps",
				Namespace: "default", Name: "a", Caller: envtest.AdminUser, Occurrence: 1,
			}, op)
			_, err := h.client.CoreV1().ConfigMaps("default").Get(t.Context(), "a", metav1.GetOptions{})
			assert.True(t, apierrors.IsNotFound(err), "nothing is stored before the answer")
		}))
	})
	assert.EqualValues(t, 2, calls)

	tests := map[string]struct {
		calls int64 // of both webhooks
		err   string
	}{
		"fail " + policy + " verb=create with=refused": {1, `failed calling webhook "policy.example.com"`},
		"fail " + policy + " name=default/b with=503":  {1, "injected at webhook/policy.example.com create configmaps default/b by snowglobe-admin"},
		"fail " + policy + " with=reset":               {1, "connection reset by peer"},
		"lose-reply " + policy:                         {2, "connection reset by peer"},
		"drop " + policy:                               {1, "context deadline exceeded"},
		"cancel " + policy:                             {1, "context canceled"},
		"duplicate " + policy:                          {3, ""},
		"fail webhook/* with=eof":                      {0, "EOF"},
	}
	for rule, want := range tests {
		var err error
		calls := reviewer.during(func() { h.bent(rule, func() { err = h.createReviewed("b") }) })
		assert.Equal(t, want.calls, calls, "calls with %q", rule)
		if want.err != "" {
			assert.ErrorContains(t, err, want.err, "%s", rule)
		} else if assert.NoError(t, err, "%s", rule) {
			require.NoError(t, h.client.CoreV1().ConfigMaps("default").Delete(t.Context(), "b", metav1.DeleteOptions{}))
		}
	}
}

const thingsPath = "/apis/things.example.com/v1/namespaces/default/things/a"

// serveThings is an aggregated server.
func serveThings(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch req.URL.Path {
	case "/apis/things.example.com/v1":
		_, _ = io.WriteString(w, `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "things.example.com/v1", "resources": []}`)
	case thingsPath:
		_, _ = io.WriteString(w, `{"kind": "Thing"}`)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// ask asks the API server for a path, and returns the answer.
func (h *httpTest) ask(ctx context.Context, path string) (string, error) {
	result := h.client.CoreV1().RESTClient().Get().AbsPath(path).Do(ctx)
	body, _ := result.Raw()
	return string(body), result.Error()
}

// causes is what a server has said that did not answer as an API server does.
func causes(err error) (said string) {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			said += cause.Message
		}
	}
	return said
}

// installAPIService has an aggregated server serve things.example.com, by a
// service that stands for a name outside, and waits until it does.
func installAPIService(h *httpTest, at string) {
	h.Helper()
	address, err := url.Parse(at)
	require.NoError(h, err)
	port, err := strconv.Atoi(address.Port())
	require.NoError(h, err)
	_, err = h.client.CoreV1().Services("default").Create(h.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "things"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost", Ports: []corev1.ServicePort{{Port: int32(port)}}},
	}, metav1.CreateOptions{})
	require.NoError(h, err)
	service := `{"kind": "APIService", "apiVersion": "apiregistration.k8s.io/v1", "metadata": {"name": "v1.things.example.com"}, "spec": {
		"group": "things.example.com", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 10, "insecureSkipTLSVerify": true,
		"service": {"namespace": "default", "name": "things", "port": ` + strconv.Itoa(port) + `}}}`
	require.NoError(h, h.client.CoreV1().RESTClient().Post().AbsPath("/apis/apiregistration.k8s.io/v1/apiservices").
		SetHeader("Content-Type", "application/json").Body([]byte(service)).Do(h.Context()).Error())
	for {
		if _, err := h.ask(h.Context(), thingsPath); err == nil {
			return
		}
		require.NoError(h, h.Context().Err())
	}
}

func showAPIService(t testing.TB, cp *envtest.ControlPlane) {
	h := newHTTPTest(t, cp)
	var asked atomic.Int64 // for the thing; the server's own requests are for other paths
	things := newOutsider(t, func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == thingsPath {
			asked.Add(1)
		}
		serveThings(w, req)
	})
	installAPIService(h, things.URL)
	const point = "apiservice/v1.things.example.com"
	var answer string
	get := func() (err error) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		answer, err = h.ask(ctx, thingsPath)
		return err
	}

	before := asked.Load()
	assert.NoError(t, h.held(point+" resource=things.things.example.com", get, func(op fault.Operation) {
		assert.Equal(t, fault.Operation{
			Point: point, Phase: fault.Before, Server: "apiserver-0", Verb: "get", Resource: "things.things.example.com",
			Namespace: "default", Name: "a", Key: thingsPath, Caller: envtest.AdminUser, Occurrence: 1,
		}, op)
		assert.Equal(t, before, asked.Load())
	}))
	assert.Equal(t, before+1, asked.Load())
	assert.Contains(t, answer, "Thing")

	tests := map[string]struct {
		asked int64
		err   string
	}{
		"fail " + point + " verb=get name=default/a with=refused": {0, "error trying to reach service: dial tcp: connect: connection refused"},
		"fail " + point + " with=503":                             {0, "injected at " + point},
		"lose-reply " + point:                                     {1, "connection reset by peer"},
		"cancel " + point:                                         {0, "context canceled"},
		"duplicate " + point:                                      {2, ""},
	}
	for rule, want := range tests {
		before := asked.Load()
		var err error
		h.bent(rule, func() { err = get() })
		assert.Equal(t, want.asked, asked.Load()-before, "requests with %q", rule)
		if want.err == "" {
			assert.NoError(t, err, "%s", rule)
		} else if assert.Error(t, err, "%s", rule) {
			assert.Contains(t, err.Error()+causes(err), want.err, "%s", rule)
		}
	}

	// Of a request that is dropped no server hears, until its client gives up.
	before = asked.Load()
	h.bent("drop "+point, func() {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := h.ask(ctx, thingsPath)
			done <- err
		}()
		awaitFault(t, cp, "drop", point)
		select {
		case err := <-done:
			t.Error("an answer to a request that was dropped: ", err)
		default:
		}
		cancel()
		assert.ErrorIs(t, <-done, context.Canceled)
	})
	assert.Equal(t, before, asked.Load())
}

// awaitFault waits until a rule has decided about an operation.
func awaitFault(t testing.TB, cp *envtest.ControlPlane, action, point string) {
	t.Helper()
	_, err := cp.Trace().Await(t.Context(), func(r trace.Record) bool {
		f, ok := r.Event.(trace.Fault)
		return ok && f.Phase == trace.Applied && f.Action == action && f.Point == point
	})
	require.NoError(t, err)
}

func showEgress(t testing.TB, cp *envtest.ControlPlane) {
	h := newHTTPTest(t, cp)
	reviewer := newOutsider(t, review)
	reviewer.Config.SetKeepAlivesEnabled(false) // every call dials
	installWebhooks(h, reviewer)
	const dial = "egress/controlplane"
	calls := reviewer.during(func() {
		assert.NoError(t, h.held(dial, func() error { return h.createReviewed("a") }, func(op fault.Operation) {
			assert.Equal(t, fault.Operation{Point: dial, Phase: fault.Before, Server: "apiserver-0", Key: "127.0.0.1", Occurrence: op.Occurrence}, op)
		}))
	})
	assert.EqualValues(t, 2, calls)
	for rule, want := range map[string]string{
		"fail " + dial + " with=refused":                   "connection refused",
		"fail " + dial + " key=127.0.0.1 with=unreachable": "no route to host",
		"fail " + dial + " with=timeout":                   "context deadline exceeded",
		"drop " + dial:                                     "context deadline exceeded",
		"cancel " + dial:                                   "context canceled",
	} {
		calls := reviewer.during(func() {
			h.bent(rule, func() { assert.ErrorContains(t, h.createReviewed("b"), want, "%s", rule) })
		})
		assert.Zero(t, calls, "calls with %q", rule)
	}

	things := newOutsider(t, serveThings)
	things.Config.SetKeepAlivesEnabled(false)
	installAPIService(h, things.URL)
	h.bent("fail egress/cluster key=localhost with=unreachable", func() {
		_, err := h.ask(t.Context(), thingsPath)
		assert.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
	})

	// Of upstream's own clients of the store the one that looks after its health
	// dials when it is asked.
	assert.NoError(t, h.held("egress/etcd", func() error {
		_, err := h.ask(t.Context(), "/api/v1/componentstatuses/etcd-0")
		return err
	}, func(op fault.Operation) { assert.Equal(t, "egress/etcd", op.Point) }))
}
