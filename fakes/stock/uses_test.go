package stock

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	etcdkubernetes "go.etcd.io/etcd/client/v3/kubernetes"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"

	"snowglobe.test/fakes/aggregated"
	"snowglobe.test/fakes/konnectivity"
	"snowglobe.test/fakes/kubelet"
	"snowglobe.test/fakes/oidc"
	"snowglobe.test/fakes/stub"
	"snowglobe.test/fakes/webhook"
)

// useTimeout is how long the program may take to notice something.
const useTimeout = time.Minute

// TestStock has a stock kube-apiserver call every fake.
func TestStock(t *testing.T) {
	w := start(t, findBinary(t))
	for _, use := range []struct {
		fake string
		test func(*testing.T, *world)
	}{
		{"etcd and kms", useKMS},
		{"oidc", useIssuer},
		{"token-review, subject-access-review and audit", useReviews},
		{"admission", useAdmission},
		{"conversion", useConversion},
		{"kubelet", useKubelet},
		{"aggregated", useAggregated},
		{"konnectivity", useProxies},
	} {
		t.Run(use.fake, func(t *testing.T) { use.test(t, w) })
	}
}

// useKMS looks at what is in the store.
func useKMS(t *testing.T, w *world) {
	secrets := w.kube.CoreV1().Secrets(metav1.NamespaceDefault)
	_, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, StringData: map[string]string{"color": "white"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	stored, err := w.store.Client().Get(t.Context(), "/registry/secrets/default/s", etcdkubernetes.GetOptions{})
	require.NoError(t, err)
	require.NotNil(t, stored.KV)
	assert.True(t, bytes.HasPrefix(stored.KV.Value, []byte("k8s:enc:kms:v2:fake:")))
	assert.NotContains(t, string(stored.KV.Value), "white")
	read, err := secrets.Get(t.Context(), "s", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "white", string(read.Data["color"]))
	assert.NotEmpty(t, w.plugin.Status.Calls())
	assert.NotEmpty(t, w.plugin.Encrypt.Calls())
}

// as returns a client with a bearer token.
func (w *world) as(t *testing.T, token string) *kubernetes.Clientset {
	t.Helper()
	config := rest.AnonymousClientConfig(w.admin)
	config.BearerToken = token
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return client
}

func whoami(ctx context.Context, client *kubernetes.Clientset) (authenticationv1.UserInfo, error) {
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	return review.Status.UserInfo, nil
}

func useIssuer(t *testing.T, w *world) {
	issue := func(key oidc.Key) string {
		token, err := w.issuer.Issue(oidc.Token{Subject: "jill", Audience: []string{audience}, Key: key, Claims: map[string]any{"groups": []string{"skiers"}}})
		require.NoError(t, err)
		return token
	}
	user, err := whoami(t.Context(), w.as(t, issue(oidc.CurrentKey)))
	require.NoError(t, err)
	assert.Equal(t, "jill", user.Username)
	assert.Contains(t, user.Groups, "skiers")
	_, err = whoami(t.Context(), w.as(t, issue(oidc.ForgedKey)))
	assert.True(t, apierrors.IsUnauthorized(err), "%v", err)

	require.NoError(t, w.issuer.Rotate())
	user, err = whoami(t.Context(), w.as(t, issue(oidc.CurrentKey)))
	require.NoError(t, err)
	assert.Equal(t, "jill", user.Username)
	var paths []string
	for _, call := range w.issuer.Requests.Calls() {
		paths = append(paths, call.Request.Path)
	}
	assert.Contains(t, paths, oidc.DiscoveryPath)
	assert.GreaterOrEqual(t, len(slices.DeleteFunc(paths, func(p string) bool { return p != oidc.KeysPath })), 2, "the keys are asked for again")
}

func useReviews(t *testing.T, w *world) {
	w.tokens.SetToken("jane's", authenticationv1.UserInfo{Username: "jane"})
	w.access.Allow(webhook.Access{User: "jane", Resource: "configmaps"}, "she may")
	jane := w.as(t, "jane's")
	_, err := jane.CoreV1().ConfigMaps(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	_, err = jane.CoreV1().Secrets(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
	assert.True(t, apierrors.IsForbidden(err), "%v", err)
	assert.NotEmpty(t, w.tokens.Requests.Calls())
	assert.NotEmpty(t, w.access.Requests.Calls())
	var heard []string
	for _, event := range w.audit.Events() {
		heard = append(heard, fmt.Sprint(event.Stage, " ", event.User.Username, " ", event.RequestURI))
	}
	assert.Contains(t, heard, "ResponseComplete jane /api/v1/namespaces/default/configmaps")
}

func useAdmission(t *testing.T, w *world) {
	w.admission.Requests.Use(webhook.AdmissionRule{Answer: webhook.Mutate(func(object *unstructured.Unstructured) error {
		object.SetLabels(map[string]string{"seen": "yes"})
		return nil
	})})
	none := admissionregistrationv1.SideEffectClassNone
	_, err := w.kube.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "labels"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "labels.example.com", ClientConfig: w.admission.ClientConfig("/mutate"), AdmissionReviewVersions: []string{"v1"}, SideEffects: &none,
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	w.eventually(useTimeout, func(ctx context.Context) error { // its informer hears of the webhook
		made, err := w.kube.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "a-"}}, metav1.CreateOptions{})
		if err == nil && made.Labels["seen"] != "yes" {
			return fmt.Errorf("the labels are %v", made.Labels)
		}
		return err
	})
	assert.NotEmpty(t, w.admission.Requests.Calls())
}

func useConversion(t *testing.T, w *world) {
	client, err := dynamic.NewForConfig(w.admin)
	require.NoError(t, err)
	anything := &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}}
	config := w.conversion.ClientConfig("")
	crd := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				{Name: "v1", Served: true, Storage: true, Schema: anything}, {Name: "v2", Served: true, Schema: anything},
			},
			Conversion: &apiextensionsv1.CustomResourceConversion{
				Strategy: apiextensionsv1.WebhookConverter,
				Webhook:  &apiextensionsv1.WebhookConversion{ClientConfig: &config, ConversionReviewVersions: []string{"v1"}},
			},
		},
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	require.NoError(t, err)
	_, err = client.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")).
		Create(t.Context(), &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
	require.NoError(t, err)
	widgets := func(version string) dynamic.ResourceInterface {
		return client.Resource(schema.GroupVersionResource{Group: "example.com", Version: version, Resource: "widgets"}).Namespace(metav1.NamespaceDefault)
	}
	w.eventually(useTimeout, func(ctx context.Context) error {
		_, err := widgets("v1").Create(ctx, object("example.com/v1", "Widget", "snow"), metav1.CreateOptions{})
		return err
	})
	read, err := widgets("v2").Get(t.Context(), "snow", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "example.com/v2", read.GetAPIVersion())
	assert.NotEmpty(t, w.conversion.Requests.Calls())
}

func object(version, kind, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": name, "namespace": metav1.NamespaceDefault},
	}}
}

// useKubelet reads a log, runs a command and forwards a port.
func useKubelet(t *testing.T, w *world) {
	app := &kubelet.Container{Name: "app", Exec: func(_ context.Context, p *kubelet.Process) (int, error) {
		_, err := fmt.Fprint(p.Stdout, strings.Join(p.Request.Command, " "))
		return 0, err
	}}
	app.Log.Print("it snows")
	app.Log.End()
	answer := func(_ context.Context, conn net.Conn) error {
		_, err := io.WriteString(conn, "HTTP/1.0 200 OK\r\n\r\nforwarded")
		return err
	}
	require.NoError(t, w.node.AddPod(&kubelet.Pod{Namespace: metav1.NamespaceDefault, Name: "web", Containers: []*kubelet.Container{app},
		Ports: map[int]func(context.Context, net.Conn) error{80: answer}}))
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(w.nodePort)
	_, err := w.kube.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
	require.NoError(t, err)
	pods := w.kube.CoreV1().Pods(metav1.NamespaceDefault)
	pod, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "app", Image: "web"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	pod.Status.Phase = corev1.PodRunning
	_, err = pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	require.NoError(t, err)

	log, err := pods.GetLogs("web", &corev1.PodLogOptions{Follow: true}).DoRaw(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "it snows\n", string(log))

	const path = "/api/v1/namespaces/default/pods/web/"
	executor, err := remotecommand.NewWebSocketExecutor(w.admin, http.MethodGet, w.admin.Host+path+"exec?stdout=true&command=echo&command=snow")
	require.NoError(t, err)
	var stdout bytes.Buffer
	require.NoError(t, executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: &stdout}))
	assert.Equal(t, "echo snow", stdout.String())

	assert.Equal(t, "forwarded", w.forwarded(t, w.admin.Host+path+"portforward"))
	for _, session := range w.node.Sessions() {
		assert.Equal(t, "kube-apiserver", session.Request.User)
	}
}

// forwarded is what port 80 of a pod says to a GET through a port that is forwarded to it.
func (w *world) forwarded(t *testing.T, location string) string {
	t.Helper()
	parsed, err := url.Parse(location)
	require.NoError(t, err)
	dialer, err := portforward.NewSPDYOverWebsocketDialerForStreaming(parsed, w.admin)
	require.NoError(t, err)
	stop, ready, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	forwarder, err := portforward.NewOnAddressesForStreaming(dialer, []string{"127.0.0.1"}, []string{"0:80"}, stop, ready, io.Discard, io.Discard)
	require.NoError(t, err)
	go func() { ended <- forwarder.ForwardPorts() }()
	defer func() {
		close(stop)
		assert.NoError(t, <-ended)
	}()
	select {
	case <-ready:
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
	}
	ports, err := forwarder.GetPorts()
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: useTimeout}
	response, err := client.Get("http://127.0.0.1:" + strconv.Itoa(int(ports[0].Local)))
	require.NoError(t, err)
	defer func() { assert.NoError(t, response.Body.Close()) }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(body)
}

func useAggregated(t *testing.T, w *world) {
	_, err := w.kube.CoreV1().Services(metav1.NamespaceDefault).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	client, err := dynamic.NewForConfig(w.admin)
	require.NoError(t, err)
	_, err = client.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}).
		Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1.aggregated.example.com"},
			"spec": map[string]any{
				"group": "aggregated.example.com", "version": "v1", "groupPriorityMinimum": int64(1000), "versionPriority": int64(10),
				"caBundle": base64.StdEncoding.EncodeToString(w.widgets.CA()),
				"service":  map[string]any{"namespace": metav1.NamespaceDefault, "name": "widgets", "port": int64(w.apiPort)},
			},
		}}, metav1.CreateOptions{})
	require.NoError(t, err)
	flakes := client.Resource(schema.GroupVersionResource{Group: "aggregated.example.com", Version: "v1", Resource: "flakes"}).Namespace(metav1.NamespaceDefault)
	w.eventually(useTimeout, func(ctx context.Context) error {
		_, err := flakes.Create(ctx, object("aggregated.example.com/v1", "Flake", "a"), metav1.CreateOptions{})
		return err
	})
	calls := w.widgets.Requests.Calls()
	i := slices.IndexFunc(calls, func(c stub.Call[aggregated.Request, http.Handler]) bool { return c.Request.Verb == "create" })
	require.NotEqual(t, -1, i)
	made := calls[i].Request
	assert.Equal(t, "create flakes by admin through front-proxy", fmt.Sprintf("%s %s by %s through %s", made.Verb, made.Resource, made.User, made.FrontProxy))
}

// useProxies looks at the tunnels of all the others.
func useProxies(t *testing.T, w *world) {
	address := func(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
	host := func(location string) string {
		parsed, err := url.Parse(location)
		require.NoError(t, err)
		return parsed.Host
	}
	for _, c := range []struct {
		proxy *konnectivity.Proxy
		wants []string
	}{
		{w.overGRPC, []string{address(w.nodePort), net.JoinHostPort("localhost", strconv.Itoa(w.apiPort))}},
		{w.overHTTP, []string{host(w.issuer.URL()), host(w.admission.URL())}},
	} {
		opened := map[string]bool{}
		for _, tunnel := range c.proxy.Tunnels() {
			opened[tunnel.Request.Address] = opened[tunnel.Request.Address] || tunnel.Received > 0
		}
		for _, want := range c.wants {
			assert.True(t, opened[want], "a tunnel to %s; there are %v", want, opened)
		}
	}
}
