//go:build soak

package soak_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"snowglobe.test/envtest"
)

// use has clients do what clients do, for at most so long, whatever becomes of it.
func use(ctx context.Context, cp *envtest.ControlPlane, atMost time.Duration, outside *outsider) {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	config := cp.NewClient().Config(envtest.User("jane", "system:masters"))
	config.Timeout = atMost / 4
	client := kubernetes.NewForConfigOrDie(config)
	factory := informers.NewSharedInformerFactory(client, 0)
	factory.Core().V1().ConfigMaps().Informer()
	factory.StartWithContext(ctx)
	defer func() {
		cancel()
		factory.Shutdown()
	}()
	outside.install(ctx, client)
	useObjects(ctx, client)
	useToken(ctx, cp, client)
	useOutside(ctx, cp, client, outside)
	time.Sleep(3 * time.Second) // for what the servers do every second
}

func useObjects(ctx context.Context, client kubernetes.Interface) {
	maps := client.CoreV1().ConfigMaps("default")
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "used", Labels: reviewed}}
	_, _ = maps.Create(ctx, object, metav1.CreateOptions{})
	_, _ = maps.Get(ctx, "used", metav1.GetOptions{})
	_, _ = maps.Patch(ctx, "used", types.MergePatchType, []byte(`{"data":{"a":"1"}}`), metav1.PatchOptions{})
	_, _ = maps.List(ctx, metav1.ListOptions{Limit: 1})
	_, _ = maps.Update(ctx, object, metav1.UpdateOptions{})
	time.Sleep(100 * time.Millisecond) // for the informer
	_ = maps.Delete(ctx, "used", metav1.DeleteOptions{})
	_, _ = client.CoreV1().Events("default").Create(ctx, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "used"}, InvolvedObject: corev1.ObjectReference{Namespace: "default", Name: "used"},
	}, metav1.CreateOptions{})
}

func useToken(ctx context.Context, cp *envtest.ControlPlane, client kubernetes.Interface) {
	accounts := client.CoreV1().ServiceAccounts("default")
	_, _ = accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, metav1.CreateOptions{})
	if token, err := accounts.CreateToken(ctx, "robot", &authenticationv1.TokenRequest{}, metav1.CreateOptions{}); err == nil {
		config := rest.CopyConfig(cp.NewClient().Config())
		config.BearerToken = token.Status.Token
		askWhoIAm(ctx, config)
	}
}

func askWhoIAm(ctx context.Context, config *rest.Config) {
	config.Timeout = 2 * time.Second
	_, _ = kubernetes.NewForConfigOrDie(config).AuthenticationV1().SelfSubjectReviews().
		Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
}

// reviewed are the labels of objects that the outsider is asked about.
var reviewed = map[string]string{"reviewed": "yes"}

// outsider is a server that the API server calls: a webhook and an aggregated
// server. A nil one is not called.
type outsider struct{ *httptest.Server }

const thingPath = "/apis/things.example.com/v1/namespaces/default/things/a"

func newOutsider() *outsider {
	mux := http.NewServeMux()
	mux.HandleFunc("/review", func(w http.ResponseWriter, req *http.Request) {
		var asked admissionv1.AdmissionReview
		if json.NewDecoder(req.Body).Decode(&asked) == nil {
			asked.Response = &admissionv1.AdmissionResponse{UID: asked.Request.UID, Allowed: true}
			_ = json.NewEncoder(w).Encode(asked)
		}
	})
	mux.HandleFunc("/apis/things.example.com/v1", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "things.example.com/v1", "resources": []}`)
	})
	mux.HandleFunc(thingPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind": "Thing"}`)
	})
	return &outsider{httptest.NewTLSServer(mux)}
}

// install has the API server call the outsider.
func (o *outsider) install(ctx context.Context, client kubernetes.Interface) {
	if o == nil {
		return
	}
	none, ignore, seconds, reviewURL := admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Ignore, int32(1), o.URL+"/review"
	_, _ = client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "reviews"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "policy.example.com", SideEffects: &none, FailurePolicy: &ignore, TimeoutSeconds: &seconds, AdmissionReviewVersions: []string{"v1"},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
			ObjectSelector: &metav1.LabelSelector{MatchLabels: reviewed},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL: &reviewURL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: o.Certificate().Raw}),
			},
		}},
	}, metav1.CreateOptions{})
	address, err := url.Parse(o.URL)
	if err != nil {
		panic(err)
	}
	port, err := strconv.Atoi(address.Port())
	if err != nil {
		panic(err)
	}
	_, _ = client.CoreV1().Services("default").Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "things"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost", Ports: []corev1.ServicePort{{Port: int32(port)}}},
	}, metav1.CreateOptions{})
	service := `{"kind": "APIService", "apiVersion": "apiregistration.k8s.io/v1", "metadata": {"name": "v1.things.example.com"}, "spec": {
		"group": "things.example.com", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 10, "insecureSkipTLSVerify": true,
		"service": {"namespace": "default", "name": "things", "port": ` + strconv.Itoa(port) + `}}}`
	_ = client.CoreV1().RESTClient().Post().AbsPath("/apis/apiregistration.k8s.io/v1/apiservices").
		SetHeader("Content-Type", "application/json").Body([]byte(service)).Do(ctx).Error()
}

// useOutside asks until the outsider has been asked, and comes with a certificate.
func useOutside(ctx context.Context, cp *envtest.ControlPlane, client kubernetes.Interface, outside *outsider) {
	if outside == nil {
		return
	}
	for asked := 0; asked < 3 && ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		if client.CoreV1().RESTClient().Get().AbsPath(thingPath).Do(ctx).Error() == nil {
			asked++
		}
	}
	maps := client.CoreV1().ConfigMaps("default")
	for range 3 {
		_, _ = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "reviewed-", Labels: reviewed}}, metav1.CreateOptions{})
	}
	askWhoIAm(ctx, cp.Config(envtest.User("jane"), envtest.Remote()))
	_ = client.CoreV1().RESTClient().Get().AbsPath("/api/v1/componentstatuses/etcd-0").Do(ctx).Error()
}
