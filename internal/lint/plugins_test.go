package lint

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPlugins finds out whether upstream still has the build tag that leaves out support for plugins of
// Go, and whether it is still needed. Builds set it because they link faster without plugins.
func TestPlugins(t *testing.T) {
	assert.NotContains(t, linkedWith(t, "kustomize_disable_go_plugin_support"), "plugin")
	assert.Contains(t, linkedWith(t, ""), "plugin", "the tag is needed no more")
}

// TestLight finds out whether a light build still leaves out what takes long to compile.
func TestLight(t *testing.T) {
	light, whole := linkedWith(t, "snowglobe_light"), linkedWith(t, "")
	for _, left := range []string{
		"k8s.io/kubernetes/pkg/scheduler", "k8s.io/kubernetes/cmd/kube-controller-manager/app", "k8s.io/kubectl/pkg/cmd",
		"snowglobe.test/conformance", "snowglobe.test/bench",
	} {
		assert.Contains(t, whole, left)
		assert.NotContains(t, light, left)
	}
}

// linkedWith lists the packages of the program, built with tags.
func linkedWith(t *testing.T, tags string) []string {
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags="+tags, "./cmd/snowglobe")
	list.Dir = "../.."
	out, err := list.Output()
	require.NoError(t, err)
	return strings.Fields(string(out))
}
