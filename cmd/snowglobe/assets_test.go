package main

import (
	"bytes"
	"io"
	"os"
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
	require.NoError(t, makeAssets(dir))
	theirs := filepath.Join(t.TempDir(), executable("etcd"))
	require.NoError(t, os.WriteFile(theirs, []byte("etcd"), 0o755))
	assert.ErrorContains(t, makeAssets(filepath.Dir(theirs)), theirs+" is there already")
	assert.ErrorContains(t, makeAssets(theirs), "is a file; name a folder")
	left, err := os.ReadDir(filepath.Dir(theirs))
	require.NoError(t, err)
	assert.Len(t, left, 1)
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
