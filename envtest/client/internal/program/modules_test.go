package program

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// write writes files below a folder.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
}

// userOf makes a workspace's folder with a module that takes this one from a folder, goes there, and
// returns it. Nothing can be fetched.
func userOf(t *testing.T, client string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	write(t, folder, map[string]string{
		"suite/go.mod": "module example.com/suite\n\ngo 1.24.0\n\nrequire " + Module + " v0.0.0\n\n" +
			"replace " + Module + " => " + client + "\n",
		"suite/suite.go": "package suite\n\nimport _ \"" + Module + "\"\n",
	})
	t.Chdir(filepath.Join(folder, "suite"))
	for name, value := range map[string]string{"GOPROXY": "off", "GOFLAGS": "", "GOWORK": ""} {
		t.Setenv(name, value)
	}
	return folder
}

// TestFindSource finds the checkout that a module of a user takes this one from, whatever the module
// is built by, and where nothing can be fetched.
func TestFindSource(t *testing.T) {
	for name, test := range map[string]struct {
		workspace bool
		vendor    string // the command that makes a vendor folder
		env       map[string]string
	}{
		"a module":                {},
		"readonly":                {env: map[string]string{"GOFLAGS": "-mod=readonly"}},
		"mod":                     {env: map[string]string{"GOFLAGS": "-mod=mod"}},
		"a vendor folder":         {vendor: "mod"},
		"a vendor folder by flag": {vendor: "mod", env: map[string]string{"GOFLAGS": "-mod=vendor"}},
		"an unused vendor folder": {vendor: "mod", env: map[string]string{"GOFLAGS": "-mod=readonly"}},
		"a workspace":             {workspace: true},
		"an unused workspace":     {workspace: true, env: map[string]string{"GOWORK": "off"}},
		"a vendored workspace":    {workspace: true, vendor: "work"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := checkout(t)
			write(t, dir, map[string]string{
				"envtest/client/go.mod":    "module " + Module + "\n\ngo 1.24.0\n",
				"envtest/client/client.go": "package client\n",
				"cmd/snowglobe/main.go":    "package main\n",
			})
			user := userOf(t, filepath.Join(dir, "envtest", "client"))
			if test.workspace {
				write(t, user, map[string]string{"go.work": "go 1.24.0\n\nuse ./suite\n"})
			}
			if test.vendor != "" {
				said, err := exec.CommandContext(t.Context(), "go", test.vendor, "vendor").CombinedOutput()
				require.NoError(t, err, "%s", said)
			}
			for name, value := range test.env {
				t.Setenv(name, value)
			}
			found, err := findSource(t.Context())
			require.NoError(t, err)
			assert.Equal(t, source{dir: dir}, *found)
		})
	}
}

// TestFindNothing names the ways out where there is no checkout.
func TestFindNothing(t *testing.T) {
	client := t.TempDir()
	write(t, client, map[string]string{"go.mod": "module " + Module + "\n\ngo 1.24.0\n"})
	userOf(t, client)
	_, err := Find(t.Context(), t.TempDir())
	assert.ErrorContains(t, err, "outside a checkout of snowglobe.test")
	assert.ErrorContains(t, err, "\nSet SNOWGLOBE to a snowglobe that was built elsewhere, or start a server")
}
