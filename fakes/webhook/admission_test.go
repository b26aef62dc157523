package webhook_test

import (
	"context"
	"crypto/tls"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	webhooktesting "k8s.io/apiserver/pkg/admission/plugin/webhook/testing"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"snowglobe.test/fakes/stub"
	"snowglobe.test/fakes/webhook"
)

func serveAdmission(t *testing.T, p place, hosts ...string) *webhook.Admission {
	t.Helper()
	fake, err := webhook.ServeAdmission(p, hosts...)
	require.NoError(t, err)
	stopAtEnd(t, fake)
	return fake
}

// plugin is what the validating and the mutating admission plugin have in common.
type plugin interface {
	SetAuthenticationInfoResolverWrapper(webhookutil.AuthenticationInfoResolverWrapper)
	SetServiceResolver(webhookutil.ServiceResolver)
	SetExternalKubeClientSet(kubernetes.Interface)
	SetExternalKubeInformerFactory(informers.SharedInformerFactory)
	ValidateInitialization() error
}

const namespace = "default"

// resolver dials as the place wants.
func (p place) resolver() webhookutil.AuthenticationInfoResolverWrapper {
	return func(webhookutil.AuthenticationInfoResolver) webhookutil.AuthenticationInfoResolver {
		return &webhookutil.AuthenticationInfoResolverDelegator{
			ClientConfigForFunc: func(string) (*rest.Config, error) { return &rest.Config{Dial: p.dial}, nil },
			ClientConfigForServiceFunc: func(string, string, int) (*rest.Config, error) {
				return &rest.Config{Dial: p.dial}, nil
			},
		}
	}
}

func begin(t *testing.T, p place, plugin plugin, client kubernetes.Interface, factory informers.SharedInformerFactory) {
	t.Helper()
	plugin.SetAuthenticationInfoResolverWrapper(p.resolver())
	plugin.SetServiceResolver(webhookutil.NewDefaultServiceResolver())
	plugin.SetExternalKubeClientSet(client)
	plugin.SetExternalKubeInformerFactory(factory)
	require.NoError(t, plugin.ValidateInitialization())
	ctx, cancel := context.WithCancel(context.Background())
	factory.Start(ctx.Done())
	t.Cleanup(func() { cancel(); factory.Shutdown() })
	factory.WaitForCacheSync(ctx.Done())
}

// validatingHook matches all, with ten seconds to answer.
func validatingHook(config registrationv1.WebhookClientConfig, policy registrationv1.FailurePolicyType) registrationv1.ValidatingWebhook {
	none, seconds := registrationv1.SideEffectClassNone, int32(10)
	return registrationv1.ValidatingWebhook{
		Name: "test.example.com", ClientConfig: config, FailurePolicy: &policy, SideEffects: &none, TimeoutSeconds: &seconds,
		AdmissionReviewVersions: []string{"v1"}, NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
		Rules: []registrationv1.RuleWithOperations{{
			Operations: []registrationv1.OperationType{registrationv1.OperationAll},
			Rule:       registrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"}},
		}},
	}
}

func newValidating(t *testing.T, p place, hook registrationv1.ValidatingWebhook) *validating.Plugin {
	t.Helper()
	plugin, err := validating.NewValidatingAdmissionWebhook(nil)
	require.NoError(t, err)
	client, factory := webhooktesting.NewFakeValidatingDataSource(namespace, []registrationv1.ValidatingWebhook{hook}, nil)
	begin(t, p, plugin, client, factory)
	return plugin
}

func newMutating(t *testing.T, p place, hook registrationv1.ValidatingWebhook) *mutating.Plugin {
	t.Helper()
	plugin, err := mutating.NewMutatingWebhook(nil)
	require.NoError(t, err)
	client, factory := webhooktesting.NewFakeMutatingDataSource(namespace,
		webhooktesting.ConvertToMutatingWebhooks([]registrationv1.ValidatingWebhook{hook}), nil)
	begin(t, p, plugin, client, factory)
	return plugin
}

// warnings records what the API server would tell its client.
type warnings struct {
	mu   sync.Mutex
	text []string
}

func (w *warnings) AddWarning(_, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, text)
}

// TestAdmissionAnswers are what upstream's validating plugin makes of answers.
func TestAdmissionAnswers(t *testing.T) {
	full := webhook.Allow("deprecated")
	full.AuditAnnotations = map[string]string{"note": "seen"}
	notMine := webhook.Allow()
	notMine.UID = "not-mine"
	half := webhook.Patch([]byte("[]"))
	half.PatchType = nil
	type answer struct {
		name   string
		answer admissionv1.AdmissionResponse
		err    error
		want   string // the error, "" for none
		failed bool   // it is a failure to call the webhook
	}
	cases := []answer{
		{name: "allow", answer: webhook.Allow()},
		{name: "allow and tell", answer: full},
		{name: "deny", answer: webhook.Deny(418, "no teapots"), want: `admission webhook "test.example.com" denied the request: no teapots`},
		{name: "deny with no more", answer: admissionv1.AdmissionResponse{}, want: `denied the request without explanation`},
		{name: "another's uid", answer: notMine, want: `expected response.uid=`, failed: true},
		{name: "patch by a validating webhook", answer: half, want: "validating webhook may not return response.patch", failed: true},
		{name: "fail", err: errors.New("disk full"), want: "disk full", failed: true},
		{name: "busy", err: stub.Status{Code: 503, Body: []byte("busy")}, want: "currently unable to handle the request", failed: true},
		{name: "garbage", err: stub.Status{Code: 200, Body: []byte("garbage")}, want: "failed to call webhook", failed: true},
		{name: "no response", err: stub.Status{Code: 200, Body: []byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`)},
			want: "webhook response was absent", failed: true},
		{name: "break", err: stub.ErrBreak, want: "failed to call webhook", failed: true},
	}
	everywhere(t, func(t *testing.T, p place) {
		fake := serveAdmission(t, p)
		failClosed := newValidating(t, p, validatingHook(fake.ClientConfig("/validate"), registrationv1.Fail))
		failOpen := newValidating(t, p, validatingHook(fake.ClientConfig("/validate"), registrationv1.Ignore))
		for _, c := range cases {
			remove := fake.Requests.Reply(c.answer, c.err)
			var told warnings
			ctx := warning.WithWarningRecorder(t.Context(), &told)
			attributes := webhooktesting.NewAttribute(namespace, nil, false)
			err := failClosed.Validate(ctx, attributes, webhooktesting.NewObjectInterfacesForTest())
			if c.want == "" {
				assert.NoError(t, err, c.name)
			} else {
				assert.ErrorContains(t, err, c.want, c.name)
			}
			assert.Equal(t, c.answer.Warnings, told.text, c.name)
			noted := attributes.(*webhooktesting.FakeAttributes).GetAnnotations(auditinternal.LevelMetadata)["test.example.com/note"]
			assert.Equal(t, c.answer.AuditAnnotations["note"], noted, c.name)
			if c.failed {
				err := failOpen.Validate(t.Context(), attributes, webhooktesting.NewObjectInterfacesForTest())
				assert.NoError(t, err, "%s: failing open", c.name)
			}
			remove()
		}
	})
}

func TestAdmissionRecords(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		fake := serveAdmission(t, p)
		plugin := newValidating(t, p, validatingHook(fake.ClientConfig("/validate"), registrationv1.Fail))
		require.NoError(t, plugin.Validate(t.Context(), webhooktesting.NewAttribute(namespace, nil, true), webhooktesting.NewObjectInterfacesForTest()))
		calls := fake.Requests.Calls()
		require.Len(t, calls, 1)
		request := calls[0].Request
		assert.Equal(t, "/validate", request.HTTP.Path)
		assert.Equal(t, "10s", request.HTTP.Query.Get("timeout"))
		assert.Equal(t, admissionv1.Update, request.Operation)
		assert.Equal(t, "my-pod", request.Name)
		assert.Equal(t, "webhook-test", request.UserInfo.Username)
		assert.True(t, *request.DryRun)
		assert.Contains(t, string(request.Object.Raw), `"pod.name":"my-pod"`)
		assert.True(t, calls[0].Answer.Allowed)
	})
}

func TestMutate(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		fake := serveAdmission(t, p)
		plugin := newMutating(t, p, validatingHook(fake.ClientConfig("/mutate"), registrationv1.Fail))
		admit := func() (admission.Attributes, error) {
			attributes := webhooktesting.NewAttribute(namespace, map[string]string{"a/b~c": "old", "gone": "1"}, false)
			return attributes, plugin.Admit(t.Context(), attributes, webhooktesting.NewObjectInterfacesForTest())
		}
		labels := func(attributes admission.Attributes) map[string]string {
			return attributes.GetObject().(metav1.Object).GetLabels()
		}

		fake.Requests.Use(webhook.AdmissionRule{Answer: webhook.Mutate(func(pod *unstructured.Unstructured) error {
			assert.Equal(t, "my-pod", pod.GetName())
			pod.SetLabels(map[string]string{"a/b~c": "new", "pod.name": "my-pod"})
			return nil
		})})
		attributes, err := admit()
		require.NoError(t, err)
		assert.Equal(t, map[string]string{"a/b~c": "new", "pod.name": "my-pod"}, labels(attributes))

		fake.Requests.Reply(webhook.Patch([]byte(`[{"op":"remove","path":"/metadata/labels/gone"}]`)), nil)
		attributes, err = admit()
		require.NoError(t, err)
		assert.NotContains(t, labels(attributes), "gone")

		fake.Requests.Use(webhook.AdmissionRule{Answer: webhook.Mutate(func(*unstructured.Unstructured) error { return nil })})
		_, err = admit()
		assert.NoError(t, err, "no change is no patch, not an empty one")

		fake.Requests.Use(webhook.AdmissionRule{Answer: webhook.Mutate(func(*unstructured.Unstructured) error { return errors.New("oops") })})
		_, err = admit()
		assert.ErrorContains(t, err, `mutate Pod \"my-pod\": oops`)

		fake.Requests.Use(webhook.AdmissionRule{Answer: webhook.Mutate(func(pod *unstructured.Unstructured) error {
			pod.Object["spec"] = func() {}
			return nil
		})})
		_, err = admit()
		assert.ErrorContains(t, err, "encode the JSON patch: json: unsupported type: func()")

		fake.Requests.Reply(webhook.Patch([]byte(`[{"op":"replace","path":"/no/such/path"}]`)), nil)
		_, err = admit()
		assert.Error(t, err)
	})
}

// TestAdmissionHeld has the client give up on a webhook that does not answer.
func TestAdmissionHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := memory()
		fake := serveAdmission(t, p)
		plugin := newValidating(t, p, validatingHook(fake.ClientConfig(""), registrationv1.Fail))
		gate := fake.Requests.Hold(nil)
		err := plugin.Validate(t.Context(), webhooktesting.NewAttribute(namespace, nil, false), webhooktesting.NewObjectInterfacesForTest())
		assert.ErrorContains(t, err, "context deadline exceeded")
		calls, err := fake.Requests.Await(t.Context(), 1)
		require.NoError(t, err)
		assert.EqualError(t, calls[0].Err, "held at a gate: context canceled")
		assert.Equal(t, 10*time.Second, calls[0].Answered.Sub(calls[0].Arrived))

		outcome := make(chan error, 1)
		go func() {
			outcome <- plugin.Validate(t.Context(), webhooktesting.NewAttribute(namespace, nil, false), webhooktesting.NewObjectInterfacesForTest())
		}()
		require.NoError(t, gate.Await(t.Context(), 2))
		time.Sleep(9 * time.Second)
		gate.Open()
		assert.NoError(t, <-outcome, "in time")
	})
}

func TestAdmissionAsAService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := memory()
		fake := serveAdmission(t, p, "hook.kube-system.svc", "hook.example")
		assert.Equal(t, "https://hook.kube-system.svc", fake.URL())
		config, err := fake.ServiceClientConfig("kube-system", "hook", "/validate")
		require.NoError(t, err)
		plugin := newValidating(t, p, validatingHook(config, registrationv1.Fail))
		require.NoError(t, plugin.Validate(t.Context(), webhooktesting.NewAttribute(namespace, nil, false), webhooktesting.NewObjectInterfacesForTest()))
		assert.Equal(t, "/validate", fake.Requests.Calls()[0].Request.HTTP.Path)

		_, err = fake.ServiceClientConfig("default", "hook", "")
		assert.EqualError(t, err, "the webhook has no certificate for hook.default.svc: give it that host when it begins to serve")
		_, err = fake.ServiceClientConfig("", "hook", "")
		assert.Error(t, err)
	})
}

func TestAdmissionRefuses(t *testing.T) {
	review := func(request string) string {
		return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":` + request + `}`
	}
	const of = `"kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},"userInfo":{}`
	requests := append(badEnvelopes("admission.k8s.io/v1", "AdmissionReview", `admissionReviewVersions: ["v1"]`),
		badRequest{name: "no request", body: review("null"), want: "the review has no request"},
		badRequest{name: "response", body: review(`{"uid":"1"},"response":{"uid":"1","allowed":true}`), want: "the review has a response already"},
		badRequest{name: "no uid", body: review(`{}`), want: "the request has no uid"},
		badRequest{name: "no kind", body: review(`{"uid":"1"}`), want: "the request is not about a kind and a resource"},
		badRequest{name: "operation", body: review(`{"uid":"1",` + of + `,"operation":"READ"}`), want: `the operation is "READ"`},
		badRequest{name: "no object", body: review(`{"uid":"1",` + of + `,"operation":"CREATE","object":null}`), want: "the request to CREATE has no object"},
		badRequest{name: "no old object", body: review(`{"uid":"1",` + of + `,"operation":"UPDATE","object":{}}`), want: "no oldObject"},
	)
	everywhere(t, func(t *testing.T, p place) {
		fake := serveAdmission(t, p)
		fake.Requests.Use(webhook.AdmissionRule{When: func(request webhook.AdmissionRequest) bool {
			t.Errorf("a rule was asked about %+v", request)
			return false
		}})
		refuses(t, fake.URL(), rawClient(t, fake.CA(), p), requests, func() (int, error) {
			calls := fake.Requests.Calls()
			return len(calls), calls[len(calls)-1].Err
		})
	})
}

// TestBodyBreaksOff sends half a request.
func TestBodyBreaksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := memory()
		fake := serveAdmission(t, p)
		conn, err := p.dial(t.Context(), "", "")
		require.NoError(t, err)
		client := tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
		_, err = client.Write([]byte("POST / HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"))
		require.NoError(t, err)
		require.NoError(t, client.Close())
		calls, err := fake.Requests.Await(t.Context(), 1)
		require.NoError(t, err)
		assert.ErrorContains(t, calls[0].Err, "the body of the request broke off")
	})
}
