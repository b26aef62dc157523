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
		"--auth-token=jwt":                                           "can't honour --auth-token",
		"--listen-client-urls=https://127.0.0.1:0":                   "https needs --cert-file and --key-file, or --auto-tls",
		"--listen-client-urls=unixs:///s":                            "has no TLS on unix sockets",
		"--listen-client-urls=http://0.0.0.0:0":                      "is not on loopback",
		"--listen-client-urls=http://127.0.0.1:1,http://127.0.0.1:2": "listens on one URL",
		"--snow": "not defined: -snow",
		"snow":   `"snow" is not a valid flag`,
	} {
		assert.ErrorContains(t, playEtcd(t.Context(), []string{flag}, io.Discard, io.Discard), want, flag)
	}
}

func TestEtcdStandInHelp(t *testing.T) {
	var help strings.Builder
	require.NoError(t, playEtcd(t.Context(), []string{"--help"}, &help, io.Discard))
	assert.Contains(t, help.String(), "--listen-client-urls")
	assert.Contains(t, help.String(), "--feature-gates")
	assert.NotContains(t, help.String(), "panic calling")
}
