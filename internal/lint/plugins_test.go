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
	packages := func(tags string) []string {
		list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags="+tags, "./cmd/snowglobe")
		list.Dir = "../.."
		out, err := list.Output()
		require.NoError(t, err)
		return strings.Fields(string(out))
	}
	assert.NotContains(t, packages("kustomize_disable_go_plugin_support"), "plugin")
	assert.Contains(t, packages(""), "plugin", "the tag is needed no more")
}
