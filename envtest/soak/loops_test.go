//go:build soak

package soak_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/envtest"
)

// endlessAtOnce makes upstream's flow control create what is there, again and again,
// because its informer has not heard of it.
const endlessAtOnce = "delay store/watch-event resource=prioritylevelconfigurations.flowcontrol.apiserver.k8s.io by=3s"

// Upstream has loops without a pause. Because work takes time, they end in virtual
// time, as they do outside, when what feeds them does.
func TestLoopsEndAtBoot(t *testing.T) {
	for _, rule := range []string{endlessAtOnce, "fail store/watch-create with=no-leader for=3s"} {
		t.Run(rule, func(t *testing.T) {
			envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
				require.NoError(t, cp.WaitReady(t.Context()))
			}, envtest.WithFaults(rule))
		})
	}
}

func TestLoopsEnd(t *testing.T) {
	for _, rule := range []string{"fail http/* with=410 for=3s", "fail store/watch-create with=no-leader for=3s optional"} {
		t.Run(rule, func(t *testing.T) {
			envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
				_, err := cp.Faults().Inject(rule)
				require.NoError(t, err)
				time.Sleep(10 * time.Second)
				_, err = cp.Settle(t.Context())
				require.NoError(t, err)
			})
		})
	}
}

// TestUnknownVersion has a server that does not hear of a new version of a CRD, and
// whose watch cache of it fails, and starts, and fails.
func TestUnknownVersion(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		frozen, err := cp.Faults().Inject("freeze cache/customresourcedefinitions.apiextensions.k8s.io server=apiserver-1")
		require.NoError(t, err)
		crds := apiextensionsclient.NewForConfigOrDie(cp.Servers()[0].Config()).ApiextensionsV1().CustomResourceDefinitions()
		crd, err := crds.Get(t.Context(), "gizmos.example.com", metav1.GetOptions{})
		require.NoError(t, err)
		next := *crd.Spec.Versions[0].DeepCopy()
		next.Name = "v2"
		crd.Spec.Versions[0].Storage = false
		crd.Spec.Versions = append(crd.Spec.Versions, next)
		_, err = crds.Update(t.Context(), crd, metav1.UpdateOptions{})
		require.NoError(t, err)
		time.Sleep(3 * time.Second)
		frozen.Remove()
		_, err = cp.Settle(t.Context())
		require.NoError(t, err)
	}, envtest.WithReplicas(2), envtest.WithCRDs(gizmos()))
}

func gizmos() *apiextensionsv1.CustomResourceDefinition {
	anything := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "gizmos.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com",
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "gizmos", Singular: "gizmo", Kind: "Gizmo", ListKind: "GizmoList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &anything}},
			}},
		},
	}
}

// A loop that goes on while virtual time stands still ends in an error that names it.
func TestEndlessLoop(t *testing.T) {
	begun := time.Now()
	err := envtest.SimulateContext(func(context.Context, *envtest.ControlPlane) error { return nil },
		envtest.WithoutLatency(), envtest.WithFaults(endlessAtOnce))
	require.ErrorContains(t, err, "virtual time stands still at")
	assert.ErrorContains(t, err, "create /apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations by system:apiserver -> 409")
	assert.ErrorContains(t, err, endlessAtOnce)
	t.Logf("after %s on the wall: %v", time.Since(begun), err)
}

// A webhook's server on a socket inside Simulate keeps time from moving: the test
// fails and says which goroutine it is, and those after it run.
func TestSimulateStuck(t *testing.T) {
	if os.Getenv("SNOWGLOBE_TEST_STUCK") != "" {
		envtest.Simulate(t, func(t *testing.T, _ *envtest.ControlPlane) {
			webhook := httptest.NewServer(http.NotFoundHandler())
			defer webhook.Close()
			time.Sleep(time.Minute)
		})
		return
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestSimulateStuck$")
	child.Env = append(os.Environ(), "SNOWGLOBE_TEST_STUCK=1")
	out, err := child.CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "--- FAIL: TestSimulateStuck")
	assert.Contains(t, string(out), "virtual time stands still: goroutine")
	assert.Contains(t, string(out), "is in IO wait at net/http.(*Server).Serve")
}
