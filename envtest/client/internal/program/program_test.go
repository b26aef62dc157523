package program

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// checkout makes a folder that has the files of one, and returns it.
func checkout(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, folder := range []string{filepath.Join("envtest", "client"), filepath.Join("cmd", "snowglobe")} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, folder), 0o700))
	}
	return dir
}

// TestSource tells a release from a checkout, by what the go command says of this module.
func TestSource(t *testing.T) {
	dir := checkout(t)
	client := filepath.Join(dir, "envtest", "client")
	for _, test := range []struct {
		said module
		want source
		err  string
	}{
		{said: module{Version: "v0.2.0", Dir: "cache"}, want: source{version: "v0.2.0"}},
		{said: module{Version: "v0.2.0"}, want: source{version: "v0.2.0"}}, // in a vendor folder
		{said: module{Dir: client}, want: source{dir: dir}},                // its own tests, or a workspace
		{said: module{Version: "v0.0.0", Dir: client, Replace: &module{Path: client}}, want: source{dir: dir}},
		{said: module{Version: "v0.0.0", Dir: t.TempDir(), Replace: &module{}}, err: "outside a checkout of snowglobe.test"},
		{said: module{Version: "v0.2.0", Replace: &module{Path: "example.com/fork", Version: "v1.0.0"}}, err: "is replaced by example.com/fork v1.0.0"},
	} {
		got, err := test.said.source()
		if test.err != "" {
			assert.ErrorContains(t, err, test.err)
			assert.ErrorContains(t, err, "SNOWGLOBE_SOCKET", "a way out")
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, test.want, *got)
	}
}

// TestCommand builds a release without a module, and a checkout in it; neither has what the
// environment has for the module of the test.
func TestCommand(t *testing.T) {
	t.Setenv("GOFLAGS", "-mod=vendor")
	release := (&source{version: "v0.2.0"}).command(t.Context(), "to")
	assert.Equal(t, "snowglobe.test/cmd/snowglobe@v0.2.0", release.Args[len(release.Args)-1])
	assert.Equal(t, "to", release.Dir)
	local := (&source{dir: "there"}).command(t.Context(), "to")
	assert.Equal(t, "snowglobe.test/cmd/snowglobe", local.Args[len(local.Args)-1])
	assert.Equal(t, "there", local.Dir)
	assert.Subset(t, local.Environ(), []string{"GOBIN=to", "GOFLAGS=", "GOWORK=off"})
}

// TestBuilt builds again what has changed in a checkout, and a release never.
func TestBuilt(t *testing.T) {
	dir := checkout(t)
	program := filepath.Join(t.TempDir(), "snowglobe")
	release, local := &source{version: "v0.2.0"}, &source{dir: dir}
	assert.False(t, release.built(program))
	require.NoError(t, os.WriteFile(program, nil, 0o700))
	write := func(name string, age time.Duration) {
		path, at := filepath.Join(dir, name), time.Now().Add(-age)
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		require.NoError(t, os.Chtimes(path, at, at))
	}
	write("old.go", time.Hour)
	write("new_test.go", -time.Hour)
	assert.True(t, local.built(program))
	write("new.go", -time.Hour)
	assert.False(t, local.built(program))
	assert.True(t, release.built(program))
}
