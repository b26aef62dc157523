package chain

import (
	"os"
	"testing"

	"golang.org/x/mod/modfile"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The tests of this file fail with a plain message when what the chain reaches for
// inside k8s.io/kubernetes has changed its shape.

func TestAPIVersionPriorities(t *testing.T) {
	apps := schema.GroupVersion{Group: "apps", Version: "v1"}
	if apiVersionPriorities[apps].Group == 0 {
		t.Errorf("upstream's priorities say nothing of %s: %v", apps, apiVersionPriorities)
	}
}

// TestRelease compares with go.mod, which a test binary does not carry.
func TestRelease(t *testing.T) {
	content, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	file, err := modfile.Parse("go.mod", content, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, require := range file.Require {
		if require.Mod.Path == kubernetesModule && require.Mod.Version != Release() {
			t.Errorf("Release() = %s, go.mod requires %s", Release(), require.Mod.Version)
		}
	}
}
