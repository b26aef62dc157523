package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"snowglobe.test/cmd/snowglobe/etcdmain"
	"snowglobe.test/envtest/linked"
)

// assets makes the folder. Its programs are this test.
func assets(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "assets")
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitOK, execute(t.Context(), []string{"assets", "--print", "path", dir}, &stdout, &stderr), "%s", &stderr)
	assert.Equal(t, dir+"\n", stdout.String())
	return dir
}

// TestAssets runs controller-runtime's envtest, as it is, on the folder: the server with
// its certificates and flags, a user, and kubectl.
func TestAssets(t *testing.T) {
	environment := &envtest.Environment{BinaryAssetsDirectory: assets(t)}
	environment.ControlPlane.GetAPIServer().Configure().Append("enable-admission-plugins", "AlwaysPullImages")
	config, err := environment.Start()
	require.NoError(t, err)
	defer func() { assert.NoError(t, environment.Stop()) }()
	c, err := client.New(config, client.Options{})
	require.NoError(t, err)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	require.NoError(t, c.Create(t.Context(), pod))
	assert.Equal(t, corev1.PullAlways, pod.Spec.Containers[0].ImagePullPolicy)

	viewer, err := environment.AddUser(envtest.User{Name: "viewer"}, nil)
	require.NoError(t, err)
	kubectl, err := viewer.Kubectl()
	require.NoError(t, err)
	_, stderr, err := kubectl.Run("get", "pods")
	require.Error(t, err)
	said, err := io.ReadAll(stderr)
	require.NoError(t, err)
	assert.Contains(t, string(said), `pods is forbidden: User "viewer" cannot list`)
}

// TestAssetsAgain brings a folder up to date, and leaves one alone that is not its own.
func TestAssetsAgain(t *testing.T) {
	dir := assets(t)
	require.NoError(t, makeAssets(dir, nil))
	theirs := filepath.Join(t.TempDir(), executable("etcd"))
	require.NoError(t, os.WriteFile(theirs, []byte("etcd"), 0o755))
	assert.ErrorContains(t, makeAssets(filepath.Dir(theirs), nil), theirs+" is there already")
	assert.ErrorContains(t, makeAssets(theirs, nil), "is a file; name a folder")
	left, err := os.ReadDir(filepath.Dir(theirs))
	require.NoError(t, err)
	assert.Len(t, left, 1)
}

// fakeRelease puts a kube-apiserver v1.36.3 that only knows its version into a cache folder.
func fakeRelease(t *testing.T, cache string) {
	t.Helper()
	built := filepath.Join(cache, "snowglobe", "releases", "v1.36.3", "kube-apiserver")
	require.NoError(t, os.MkdirAll(filepath.Dir(built), 0o700))
	require.NoError(t, os.WriteFile(built, []byte("#!/bin/sh\necho Kubernetes v1.36.3\n"), 0o700))
}

// TestAssetsOfRelease has the kube-apiserver of a release that was built, goes back to Snowglobe's,
// and does it again.
func TestAssetsOfRelease(t *testing.T) {
	cache, dir := t.TempDir(), filepath.Join(t.TempDir(), "assets")
	t.Setenv("XDG_CACHE_HOME", cache)
	fakeRelease(t, cache)
	for _, args := range [][]string{{"--release", "1.36"}, {"--release", "v1.36.3"}, nil, {"--release", "1.36.3"}} {
		var stdout, stderr bytes.Buffer
		require.Equal(t, exitOK, execute(t.Context(), append([]string{"assets", dir}, args...), &stdout, &stderr), "%s", &stderr)
		want := linked.Release()
		if args != nil {
			want = "v1.36.3"
		}
		assert.Contains(t, stdout.String(), "kube-apiserver "+want+", kubectl "+linked.Release())
		said, err := exec.Command(filepath.Join(dir, "kube-apiserver"), "--version").CombinedOutput()
		require.NoError(t, err)
		assert.Equal(t, "Kubernetes "+want+"\n", string(said))
		left, err := filepath.Glob(filepath.Join(dir, stockAPIServer))
		require.NoError(t, err)
		assert.Equal(t, args != nil, len(left) == 1)
	}
	var stderr bytes.Buffer
	assert.Equal(t, exitUnjudged, execute(t.Context(), []string{"assets", "--release", "newest", dir}, io.Discard, &stderr))
	assert.Contains(t, stderr.String(), `--release: "newest" is not a release of Kubernetes; give one like 1.36`)
}

func TestEtcdStandInRefuses(t *testing.T) {
	for flag, want := range map[string]string{
		"--auth-token=jwt": "can't honour --auth-token",
		"--snow":           "not defined: -snow",
		"snow":             `"snow" is not a valid flag`,
		"--listen-client-urls=http://127.0.0.1:0": "--advertise-client-urls is required when --listen-client-urls is set explicitly",
		"--heartbeat-interval=500":                "should be at least as 5 times",
	} {
		assert.ErrorContains(t, etcdmain.Run(t.Context(), []string{flag}, io.Discard, io.Discard), want, flag)
	}
	for at, want := range map[string]string{
		"https://127.0.0.1:0":                 "https needs --cert-file and --key-file, or --auto-tls",
		"unixs:///s":                          "unixs needs --cert-file and --key-file, or --auto-tls",
		"http://0.0.0.0:0":                    "is not on loopback",
		"http://127.0.0.1:0,http://0.0.0.0:0": "--listen-client-urls http://0.0.0.0:0: it is not on loopback",
	} {
		args := []string{"--listen-client-urls=" + at, "--advertise-client-urls=http://127.0.0.1:1"}
		assert.ErrorContains(t, etcdmain.Run(t.Context(), args, io.Discard, io.Discard), want, at)
	}
}

func TestEtcdStandInHelp(t *testing.T) {
	var help strings.Builder
	require.NoError(t, etcdmain.Run(t.Context(), []string{"--help"}, &help, io.Discard))
	assert.Contains(t, help.String(), "--listen-client-urls")
	assert.Contains(t, help.String(), "--feature-gates")
	assert.NotContains(t, help.String(), "panic calling")
}
