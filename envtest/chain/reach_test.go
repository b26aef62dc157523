package chain

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"snowglobe.test/envtest/linked"
)

// The tests of this file fail with a plain message when what the chain reaches for
// inside k8s.io/kubernetes has changed its shape.

func TestAPIVersionPriorities(t *testing.T) {
	apps := schema.GroupVersion{Group: "apps", Version: "v1"}
	assert.NotZero(t, apiVersionPriorities[apps].Group, "upstream's priorities say nothing of %s: %v", apps, apiVersionPriorities)
}

// TestRelease compares with go.mod, which a test binary does not carry.
func TestRelease(t *testing.T) {
	content, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	file, err := modfile.Parse("go.mod", content, nil)
	require.NoError(t, err)
	for _, required := range file.Require {
		if required.Mod.Path == "k8s.io/kubernetes" {
			assert.Equal(t, required.Mod.Version, linked.Release(), "what go.mod requires, and Release")
		}
	}
}
