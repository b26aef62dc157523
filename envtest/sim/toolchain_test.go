package sim

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/internal/pages"
)

// TestFits is about the message that a later Go gets.
func TestFits(t *testing.T) {
	for goVersion, want := range map[string]string{"go1.26": "go1.26", "go1.26.8": "go1.26", "go1.27.1": "go1.27", "go1.27rc1": "go1.27"} {
		release, err := fits(goVersion)
		require.NoError(t, err)
		assert.Equal(t, want, release)
	}
	for _, other := range []string{"go1.28.0", "go1.25.9", "devel go1.27-abcdef"} {
		_, err := fits(other)
		pages.Troubleshooting(t, "../..", err.Error())
		assert.EqualError(t, err, "sim mode needs Go 1.26 or 1.27, and the go command here is "+other+": install one of these and put it first in PATH or, if go.mod requires a later one, use go test, where a seed decides only the order of operations at the edges")
	}
}

// TestFetchedGo is a Go among the modules, and others, which stay where they are.
func TestFetchedGo(t *testing.T) {
	modules, cache := t.TempDir(), t.TempDir()
	fetched := toolchain{version: "go1.27.1", modules: modules, root: filepath.Join(modules, "golang.org", "toolchain@v0.0.1-go1.27.1.linux-amd64")}
	_, err := fetched.outOfModules(cache)
	require.Error(t, err)
	pages.Troubleshooting(t, "../..", err.Error())
	assert.ErrorContains(t, err, "sim mode replaces files of Go's own source, which the go command refuses for go1.27.1 in "+modules)

	require.NoError(t, os.MkdirAll(filepath.Join(fetched.root, "src", "errors"), 0o755))
	for range 2 { // the second time the links are there
		moved, err := fetched.outOfModules(cache)
		require.NoError(t, err)
		assert.Equal(t, []string{"GOROOT=" + moved.root, "GOTOOLCHAIN=local"}, moved.env)
		assert.DirExists(t, filepath.Join(moved.root, "src", "errors"))
		within, err := filepath.Rel(cache, moved.root)
		require.NoError(t, err)
		assert.True(t, filepath.IsLocal(within))
	}
	for _, root := range []string{"/usr/local/go", modules + "-go", filepath.Dir(modules)} {
		installed := toolchain{version: "go1.27.1", modules: modules, root: root}
		same, err := installed.outOfModules(cache)
		require.NoError(t, err)
		assert.Equal(t, installed, same)
	}
}
