package program

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
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
		{said: module{Version: "v0.0.0", Replace: &module{Path: "../client", Dir: client}}, want: source{dir: dir}}, // in a vendor folder
		{said: module{Version: "v0.0.0", Dir: t.TempDir(), Replace: &module{}}, err: "outside a checkout of snowglobe.test"},
		{said: module{Version: "v0.2.0", Replace: &module{Path: "example.com/fork", Version: "v1.0.0"}}, err: "is replaced by example.com/fork v1.0.0"},
	} {
		got, err := test.said.source()
		if test.err != "" {
			assert.ErrorContains(t, err, test.err)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, test.want, *got)
	}
}

// TestSourceOf tells a release from a checkout by the place of a file, for a test that runs where the
// go command knows of no module.
func TestSourceOf(t *testing.T) {
	dir := checkout(t)
	const file = "/internal/program/program.go"
	for place, want := range map[string]*source{
		"/go/pkg/mod/snowglobe.test/envtest/client@v0.2.0": {version: "v0.2.0"},
		"snowglobe.test/envtest/client@v0.2.0":             {version: "v0.2.0"},
		filepath.ToSlash(dir) + "/envtest/client":          {dir: dir},
		"/m/vendor/snowglobe.test/envtest/client":          nil,
		"snowglobe.test/envtest/client":                    nil,
	} {
		assert.Equal(t, want, sourceOf(place+file), place)
	}
	t.Chdir(t.TempDir()) // outside of any module
	found, err := findSource(t.Context())
	require.NoError(t, err)
	assert.FileExists(t, filepath.Join(found.dir, "cmd", "snowglobe", "main.go"))
}

// TestBuildEndsWithTest kills a test that waits for a build, as go test does after its -timeout. Then
// the build ends too, and what it has left is in the way of no other.
func TestBuildEndsWithTest(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells a process that its parent is gone")
	}
	folder := t.TempDir()
	path := filepath.Join(folder, "place", "snowglobe")
	pid := filepath.Join(folder, "pid")
	if os.Getenv("BUILD_UNTIL_KILLED") != "" {
		path = os.Getenv("BUILD_UNTIL_KILLED")
		_ = (&source{dir: t.TempDir()}).build(t.Context(), path, io.Discard)
		return
	}
	bin := t.TempDir()
	text := "#!/bin/sh\necho $$ >" + pid + "\nexec sleep 1000\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "go"), []byte(text), 0o700))
	test := exec.Command(os.Args[0], "-test.run=^TestBuildEndsWithTest$")
	test.Env = append(os.Environ(), "BUILD_UNTIL_KILLED="+path,
		"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"),
		"TMPDIR="+t.TempDir()) // what it has there is left when it is killed
	require.NoError(t, test.Start())
	var build int
	require.Eventually(t, func() bool {
		text, _ := os.ReadFile(pid)
		build, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		return build > 0
	}, time.Minute, time.Millisecond)
	require.NoError(t, test.Process.Kill())
	_ = test.Wait()
	process, err := os.FindProcess(build)
	require.NoError(t, err)
	assert.Eventually(t, func() bool { return process.Signal(syscall.Signal(0)) != nil }, time.Minute, time.Millisecond,
		"the build goes on")
	left := filepath.Join(folder, "place.building")
	assert.DirExists(t, left)
	require.Error(t, (&source{dir: t.TempDir()}).build(t.Context(), path, io.Discard), "there is nothing to build")
	assert.NoDirExists(t, left)
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
	assert.Subset(t, local.Environ(), []string{"GOBIN=to", "GOFLAGS=-mod=readonly", "GOWORK=off"})
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
