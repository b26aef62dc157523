package sample

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/union"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/egressselector"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/sample-apiserver/pkg/apis/wardle/v1alpha1"
	"k8s.io/sample-apiserver/pkg/apiserver"
	sampleopenapi "k8s.io/sample-apiserver/pkg/generated/openapi"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/memnet"
	"snowglobe.test/fakes/etcd"
)

const service = "api.wardle.svc"

var flunders = v1alpha1.SchemeGroupVersion.WithResource("flunders")

// TestInside runs sample-apiserver in the process of the test, in real and in virtual time, as
// docs/guides/aggregated.md says.
func TestInside(t *testing.T) {
	var listener *memnet.Listener
	run := func(t *testing.T, cp *envtest.ControlPlane) {
		listener = memnet.Listen() // in the bubble, if there is one
		useFlunders(t, cp, listener)
	}
	t.Run("real", func(t *testing.T) { run(t, envtest.Start(t, reach(&listener))) })
	t.Run("virtual", func(t *testing.T) { envtest.Simulate(t, run, reach(&listener)) })
}

// reach has the aggregator find the server in memory, by the name of its Service.
func reach(listener **memnet.Listener) envtest.Option {
	return envtest.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		if address != service+":443" {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}
		return (*listener).DialNetwork(ctx, network, address)
	})
}

func useFlunders(t *testing.T, cp *envtest.ControlPlane, listener *memnet.Listener) {
	stop := runInside(t, cp, listener)
	defer stop()
	client := dynamic.NewForConfigOrDie(cp.Config()).Resource(flunders).Namespace("default")
	flunder := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": flunders.GroupVersion().String(), "kind": "Flunder", "metadata": map[string]any{"name": "my-first-flunder"},
	}}
	_, err := client.Create(t.Context(), flunder, metav1.CreateOptions{})
	require.NoError(t, err)
	list, err := client.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)

	watcher, err := client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	require.NoError(t, err)
	defer watcher.Stop()
	require.NoError(t, client.Delete(t.Context(), flunder.GetName(), metav1.DeleteOptions{}))
	assert.Equal(t, watch.Deleted, (<-watcher.ResultChan()).Type)

	stranger := dynamic.NewForConfigOrDie(cp.Config(envtest.User("jane"))).Resource(flunders).Namespace("default")
	_, err = stranger.List(t.Context(), metav1.ListOptions{})
	assert.True(t, apierrors.IsForbidden(err), "%v", err)
}

// runInside runs the server, and returns how to stop it. What it is told by flags as a program, it is
// given here: a client instead of kubeconfigs, a listener in memory instead of a port, and an etcd
// in memory.
func runInside(t *testing.T, cp *envtest.ControlPlane, listener *memnet.Listener) (stop func()) {
	client := kubernetes.NewForConfigOrDie(cp.Config())
	config := genericapiserver.NewRecommendedConfig(apiserver.Codecs)
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(sampleopenapi.GetOpenAPIDefinitions, openapi.NewDefinitionNamer(apiserver.Scheme))
	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(sampleopenapi.GetOpenAPIDefinitions, openapi.NewDefinitionNamer(apiserver.Scheme))
	config.ClientConfig, config.SharedInformerFactory = cp.Config(), informers.NewSharedInformerFactory(client, 10*time.Minute)
	ca := serveIn(t, &config.Config, listener)
	authenticateDelegated(t, &config.Config, client)
	config.Authorization.Authorizer = delegatedAuthorizer(t, client)
	closeStore := storeInMemory(t, &config.Config)

	server, err := (&apiserver.Config{GenericConfig: config}).Complete().New()
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.GenericAPIServer.PrepareRun().RunWithContext(ctx) }()
	register(t, client, ca)
	return func() {
		cancel()
		assert.NoError(t, errors.Join(<-ended, closeStore()))
	}
}

// serveIn has the server serve on the listener, and ask itself there, and returns the certificate to
// trust.
func serveIn(t *testing.T, config *genericapiserver.Config, listener *memnet.Listener) (ca []byte) {
	certificate, key, err := certutil.GenerateSelfSignedCertKey(service, nil, nil)
	require.NoError(t, err)
	serving, err := dynamiccertificates.NewStaticCertKeyContent("serving", certificate, key)
	require.NoError(t, err)
	config.SecureServing = &genericapiserver.SecureServingInfo{Listener: listener, Cert: serving}
	config.LoopbackClientConfig = &rest.Config{
		Host: "https://" + service, BearerToken: string(uuid.NewUUID()), Dial: listener.DialNetwork,
		TLSClientConfig: rest.TLSClientConfig{CAData: certificate},
	}
	return certificate
}

// authenticateDelegated believes the aggregator, which it knows by what the API server publishes for
// it, and asks the API server whose tokens are shown.
func authenticateDelegated(t *testing.T, config *genericapiserver.Config, client kubernetes.Interface) {
	published, err := client.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "extension-apiserver-authentication", metav1.GetOptions{})
	require.NoError(t, err)
	ca, err := dynamiccertificates.NewStaticCAContent("front-proxy", []byte(published.Data["requestheader-client-ca-file"]))
	require.NoError(t, err)
	list := func(name string) (values headerrequest.StaticStringSlice) {
		require.NoError(t, json.Unmarshal([]byte(published.Data["requestheader-"+name]), &values))
		return values
	}
	require.NoError(t, config.Authentication.ApplyClientCert(ca, config.SecureServing))
	config.Authentication.Authenticator, _, err = authenticatorfactory.DelegatingAuthenticatorConfig{
		TokenAccessReviewClient: client.AuthenticationV1(), WebhookRetryBackoff: genericoptions.DefaultAuthWebhookRetryBackoff(),
		RequestHeaderConfig: &authenticatorfactory.RequestHeaderConfig{
			CAContentProvider: ca, AllowedClientNames: list("allowed-names"), UsernameHeaders: list("username-headers"),
			UIDHeaders: list("uid-headers"), GroupHeaders: list("group-headers"), ExtraHeaderPrefixes: list("extra-headers-prefix"),
		},
	}.New()
	require.NoError(t, err)
}

// delegatedAuthorizer asks the API server who may do what.
func delegatedAuthorizer(t *testing.T, client kubernetes.Interface) authorizer.Authorizer {
	webhook, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: client.AuthorizationV1(), AllowCacheTTL: 10 * time.Second, DenyCacheTTL: 10 * time.Second,
		WebhookRetryBackoff: genericoptions.DefaultAuthWebhookRetryBackoff(),
	}.New()
	require.NoError(t, err)
	authorize, err := union.New(union.NamedAuthorizer{AuthorizerName: "webhook", Authorizer: webhook})
	require.NoError(t, err)
	return authorize
}

// storeInMemory has the server store in an etcd of its own.
func storeInMemory(t *testing.T, config *genericapiserver.Config) (closeStore func() error) {
	store, err := etcd.New(etcd.Config{})
	require.NoError(t, err)
	listener := memnet.Listen()
	served := make(chan error, 1)
	go func() { served <- store.Serve(listener) }()
	options := genericoptions.NewEtcdOptions(storagebackend.NewDefaultConfig("/registry/wardle.example.com", apiserver.Codecs.LegacyCodec(v1alpha1.SchemeGroupVersion)))
	options.StorageConfig.Transport.ServerList = []string{"http://etcd.wardle.svc"}
	options.StorageConfig.Transport.EgressLookup = func(egressselector.NetworkContext) (utilnet.DialFunc, error) { return listener.DialNetwork, nil }
	require.NoError(t, options.ApplyTo(config))
	return func() error { return errors.Join(store.Close(), <-served) }
}

// register tells the API server of the server, and waits until it is available.
func register(t *testing.T, client kubernetes.Interface, ca []byte) {
	_, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "wardle"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = client.CoreV1().Services("wardle").Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "api"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: service, Ports: []corev1.ServicePort{{Port: 443}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	apiService := map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": flunders.Version + "." + flunders.Group},
		"spec": map[string]any{
			"group": flunders.Group, "version": flunders.Version, "groupPriorityMinimum": 1000, "versionPriority": 15,
			"service": map[string]any{"namespace": "wardle", "name": "api"}, "caBundle": base64.StdEncoding.EncodeToString(ca),
		},
	}
	body, err := json.Marshal(apiService)
	require.NoError(t, err)
	require.NoError(t, client.CoreV1().RESTClient().Post().AbsPath("/apis/apiregistration.k8s.io/v1/apiservices").Body(body).Do(t.Context()).Error())
	require.NoError(t, wait.PollUntilContextCancel(t.Context(), 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		code := 0
		client.CoreV1().RESTClient().Get().AbsPath("/apis", flunders.Group, flunders.Version, "flunders").Do(ctx).StatusCode(&code)
		return code == http.StatusOK, nil
	}))
}
