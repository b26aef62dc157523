package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
)

// TestConformanceInterrupted has Ctrl-C come while four cases run on somebody's cluster, which has
// been told before what they make there.
func TestConformanceInterrupted(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	cp := envtest.Start(t, envtest.WithKubeconfig(kubeconfig))
	ctx, interrupt := context.WithCancelCause(t.Context())
	var stderr bytes.Buffer
	ended := 0
	stdout := writerFunc(func(text []byte) (int, error) {
		if ended += bytes.Count(text, []byte("ok  ")); ended == 6 {
			interrupt(errInterrupted)
		}
		return len(text), nil
	})
	args := []string{"conformance", "--kubeconfig", kubeconfig, "--focus", "S10|S12|S8", "--parallel", "4"}
	assert.Equal(t, exitInterrupted, execute(ctx, args, stdout, &stderr), "%s", &stderr)
	told, last, _ := strings.Cut(stderr.String(), "They are removed at the end, also after Ctrl-C. Nothing else there is changed, and no server is launched.\n")
	assert.Regexp(t, `^At https://127.0.0.1:\d+, \d+ cases make objects whose names contain "snowglobe-":\n  `, told)
	assert.Contains(t, told, "  namespaces, and objects in them\n")
	assert.Contains(t, told, "  clusterroles.rbac.authorization.k8s.io\n")
	assert.Equal(t, "snowglobe: interrupted\n", last)

	objects, err := metadata.NewForConfig(cp.Config())
	require.NoError(t, err)
	for _, resource := range []schema.GroupVersionResource{
		{Version: "v1", Resource: "namespaces"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
		{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
	} {
		list, err := objects.Resource(resource).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, item := range list.Items {
			assert.NotContains(t, item.Name, suite.NamePrefix, "it is left among the %s", resource.Resource)
		}
	}
}
