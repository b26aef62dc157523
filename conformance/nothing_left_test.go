package conformance_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"snowglobe.test/conformance/engine"
	"snowglobe.test/conformance/ledger"
	"snowglobe.test/conformance/suite"
	"snowglobe.test/conformance/target"
	"snowglobe.test/envtest"
)

// somebodys is a control plane in memory that is treated as somebody's cluster.
type somebodys struct {
	answered      func(request *http.Request) // is called when the server has answered a write
	before, after []string                    // the objects there
}

// Open implements engine.Source.
func (s *somebodys) Open(ctx context.Context) (engine.Target[*suite.T], error) {
	cp, err := envtest.Launch(ctx)
	if err != nil {
		return nil, err
	}
	cluster := &suite.Cluster{Name: "somebody's", Config: cp.Config()}
	cluster.Wrap = func(next http.RoundTripper) http.RoundTripper { return impatient{next, s} }
	if cluster.Ledger, err = ledger.Lasting(cluster.Config); err == nil {
		err = awaitLastObject(ctx, cluster.Config)
	}
	if err == nil {
		s.before, err = objects(ctx, cluster.Config)
	}
	if err != nil {
		return nil, errors.Join(err, cp.Stop(ctx))
	}
	lasting := target.Lasting{Cluster: cluster, Alive: func(context.Context) error { return cp.Err() }}
	return hooked{Target: lasting, close: func(ctx context.Context) error {
		ctx = context.WithoutCancel(ctx)
		left := lasting.Close(ctx)
		var err error
		s.after, err = objects(ctx, cluster.Config)
		return errors.Join(left, err, cp.Stop(ctx))
	}}, nil
}

// lastObject is a ConfigMap that a server creates by itself, in the background, when it has been ready for a
// moment.
const lastObject = "kube-apiserver-legacy-service-account-token-tracking"

// awaitLastObject waits for lastObject.
func awaitLastObject(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	created, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Watch(ctx, metav1.ListOptions{
		FieldSelector: "metadata.name=" + lastObject})
	if err != nil {
		return err
	}
	defer created.Stop()
	if _, ok := <-created.ResultChan(); !ok {
		return errors.New(lastObject + " has not appeared")
	}
	return nil
}

// String implements engine.Source[*suite.T].
func (s *somebodys) String() string { return "somebody's cluster" }

// impatient is a transport that gives no answer to those who have lost interest in it.
type impatient struct {
	next http.RoundTripper
	of   *somebodys
}

func (i impatient) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet {
		return i.next.RoundTrip(req)
	}
	resp, err := i.next.RoundTrip(req.WithContext(context.WithoutCancel(req.Context())))
	if i.of.answered != nil {
		i.of.answered(req)
	}
	if gone := req.Context().Err(); gone != nil && err == nil {
		_ = resp.Body.Close()
		return nil, gone
	}
	return resp, err
}

// litters makes what is hard to remove, and leaves the removal to others.
func litters(ctx context.Context, t *suite.T) {
	held := []string{"conformance.snowglobe.test/hold"}
	maps := t.ConfigMaps(ctx)
	object := maps.Object("held", "first")
	object.Finalizers = held
	maps.MustCreate(ctx, object)
	_, err := t.Kube.CoreV1().Secrets(t.Namespace(ctx)).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{GenerateName: t.Name, Finalizers: held}}, metav1.CreateOptions{})
	t.Must(err, "create a Secret")
	widgets := t.Install(ctx, t.WidgetCRD())
	widgets.Make(ctx, t.Name, suite.At([]any{held[0]}, "metadata", "finalizers"))
	_, err = t.Kube.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: t.Name}}, metav1.CreateOptions{})
	t.Must(err, "create a ClusterRole")
}

// asks asks whether the server is there.
func asks(ctx context.Context, t *suite.T) {
	t.Must(t.Kube.Discovery().RESTClient().Get().AbsPath("/version").Do(ctx).Error(), "ask for the version")
}

// TestNothingIsLeft has cases end in all ways on somebody's cluster.
func TestNothingIsLeft(t *testing.T) {
	source := &somebodys{}
	report, err := engine.Simulate(t.Context(), source, []suite.Case{
		littering(passes), littering(fails), littering(panics),
	}, nil)
	require.NoError(t, err)
	assert.Equal(t, []engine.State{engine.Passed, engine.Failed, engine.Failed}, states(report))
	assert.Equal(t, source.before, source.after)
}

// littering is a case that litters first.
func littering(then func(context.Context, *suite.T)) suite.Case {
	return made("S0/litters", suite.Needs{}, func(ctx context.Context, t *suite.T) {
		litters(ctx, t)
		then(ctx, t)
	})
}

func states(report engine.Report) (states []engine.State) {
	for _, result := range report.Results {
		states = append(states, result.State)
	}
	return states
}

// TestNothingIsLeftAfterInterrupt has Ctrl-C come when the server has made something, and the case
// does not know yet.
func TestNothingIsLeftAfterInterrupt(t *testing.T) {
	for _, path := range []string{"/namespaces", "/clusterroles"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			ctx, interrupt := context.WithCancelCause(t.Context())
			defer interrupt(nil)
			interrupted := errors.New("interrupted")
			source := &somebodys{answered: func(req *http.Request) {
				if strings.HasSuffix(req.URL.Path, path) {
					interrupt(interrupted)
				}
			}}
			report, err := engine.Run(ctx, source, []suite.Case{littering(asks)}, nil)
			require.ErrorIs(t, err, interrupted)
			assert.NotContains(t, err.Error(), "left at")
			assert.Equal(t, []engine.State{engine.NotRun}, states(report))
			assert.Equal(t, source.before, source.after, "the error of the run: %v", err)
		})
	}
}

// TestWhatIsLeftIsTold has a definition that waits for somebody.
func TestWhatIsLeftIsTold(t *testing.T) {
	name := ""
	report, err := engine.Simulate(t.Context(), &somebodys{}, []suite.Case{made("S0/keeps", suite.Needs{}, func(ctx context.Context, target *suite.T) {
		definition := target.WidgetCRD()
		definition.Finalizers = []string{"conformance.snowglobe.test/hold"}
		name = target.Install(ctx, definition).CRD.Name
	})}, nil)
	require.ErrorContains(t, err, "customresourcedefinitions.apiextensions.k8s.io "+name)
	require.NotErrorIs(t, err, engine.ErrFailed)
	assert.Equal(t, 1, report.Count(engine.Passed))
}

// TestForgottenDefinition has upstream's finalizer forget a definition: the cache of its instances is
// not ready, and the finalizer hears of what it writes itself after it has tried again.
func TestForgottenDefinition(t *testing.T) {
	const (
		notReady = "delay store/list resource=widgets.example.com by=1s optional" // it is no resource yet
		late     = "delay watch/customresourcedefinitions.apiextensions.k8s.io caller=system:apiserver by=50ms"
	)
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		book, err := ledger.Lasting(cp.Config())
		require.NoError(t, err)
		page, config := book.Page("a case"), cp.Config()
		config.ContentType = runtime.ContentTypeJSON // the ledger reads it
		config.Wrap(page.Wrap)
		crds := apiextensionsclient.NewForConfigOrDie(config).ApiextensionsV1().CustomResourceDefinitions()
		definition, err := crds.Create(t.Context(), widgets, metav1.CreateOptions{})
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			now, err := crds.Get(t.Context(), definition.Name, metav1.GetOptions{})
			return err == nil && apihelpers.IsCRDConditionTrue(now, apiextensionsv1.Established)
		}, time.Minute, time.Millisecond)
		require.NoError(t, page.Remove(t.Context()))
		require.NoError(t, book.Close(t.Context()))
	}, envtest.WithFaults(notReady, late))
}

// widgets is a definition of nothing in particular.
var widgets = &apiextensionsv1.CustomResourceDefinition{
	ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
	Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: "Widget"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: "v1", Served: true, Storage: true,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
		}},
	},
}
