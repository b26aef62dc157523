package releases

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// proxy is a folder that the go command takes for a module proxy.
type proxy struct{ folder string }

// newProxy has the go command know only what is in the folder, and keep it elsewhere.
func newProxy(t *testing.T) proxy {
	t.Helper()
	p := proxy{t.TempDir()}
	for name, value := range map[string]string{
		"GOPROXY": "file://" + filepath.ToSlash(p.folder), "GOSUMDB": "off", "GOFLAGS": "-mod=vendor", "GOMODCACHE": t.TempDir(), "GOPRIVATE": "", "GONOPROXY": "",
	} {
		t.Setenv(name, value)
	}
	t.Cleanup(func() { assert.NoError(t, exec.Command("go", "clean", "-modcache").Run()) }) // it is read-only
	return p
}

// publish adds a version of a module.
func (p proxy) publish(t *testing.T, path, version, goMod string, files map[string]string) {
	t.Helper()
	folder, source := filepath.Join(p.folder, filepath.FromSlash(path), "@v"), t.TempDir()
	require.NoError(t, os.MkdirAll(folder, 0o700))
	files["go.mod"] = goMod
	for name, text := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(source, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(source, name), []byte(text), 0o600))
	}
	var packed bytes.Buffer
	require.NoError(t, zip.CreateFromDir(&packed, module.Version{Path: path, Version: version}, source))
	for name, content := range map[string]string{".mod": goMod, ".info": fmt.Sprintf(`{"Version": %q}`, version), ".zip": packed.String()} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, version+name), []byte(content), 0o600))
	}
	list, err := os.OpenFile(filepath.Join(folder, "list"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	_, err = fmt.Fprintln(list, version)
	require.NoError(t, err)
	require.NoError(t, list.Close())
}

// TestBuild builds a kube-apiserver of a few lines, whose modules are published as Kubernetes' are.
func TestBuild(t *testing.T) {
	p := newProxy(t)
	p.publish(t, "k8s.io/component-base", "v0.36.3", "module k8s.io/component-base\ngo 1.25\n",
		map[string]string{"version/version.go": "package version\nvar gitVersion, gitMajor, gitMinor string\nfunc Get() []string { return []string{gitVersion, gitMajor, gitMinor} }\n"})
	for _, version := range []string{"v1.36.2", "v1.36.3", "v1.36.4-rc.0", "v1.35.4"} {
		p.publish(t, kubernetes, version, "module k8s.io/kubernetes\ngo 1.25\ngodebug default=go1.25\nrequire k8s.io/component-base v0.0.0\nreplace k8s.io/component-base => ./staging/src/k8s.io/component-base\n",
			map[string]string{"cmd/kube-apiserver/main.go": "package main\nimport \"k8s.io/component-base/version\"\nfunc main() { println(version.Get()[0], version.Get()[1], version.Get()[2]) }\n"})
	}
	folder := Folder(filepath.Join(t.TempDir(), "releases"))
	built, err := folder.Build(t.Context(), "1.36", io.Discard)
	require.NoError(t, err)
	assert.Equal(t, "v1.36.3", built.Version)
	said, err := exec.Command(built.Program).CombinedOutput()
	require.NoError(t, err)
	assert.Equal(t, "v1.36.3 1 36\n", string(said))
	again, err := folder.Build(t.Context(), "v1.36.3", io.Discard)
	require.NoError(t, err)
	assert.Equal(t, built, again, "it is there already")

	for wanted, want := range map[string]string{
		"1.30":   "there are no modules of a release 1.30 of k8s.io/kubernetes; the newest of others: v1.36.3, v1.35.4",
		"1.36.9": "v1.36.9",
		"1.35":   "k8s.io/component-base@v0.35.4", // which is not published
		"one":    `"one" is not a release`,
	} {
		_, err := folder.Build(t.Context(), wanted, io.Discard)
		assert.ErrorContains(t, err, want)
	}
	left, err := os.ReadDir(string(folder))
	require.NoError(t, err)
	assert.Len(t, left, 1, "nothing is left of builds")
}
