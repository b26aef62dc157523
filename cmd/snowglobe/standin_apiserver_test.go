package main

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/keyutil"

	"snowglobe.test/envtest/linked"
)

// apiServerArgs are those that no kube-apiserver starts without, on a port that is free, and
// the mode of authorization with which anonymous clients may ask for its health.
func apiServerArgs(t *testing.T, etcd string) []string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, free.Close())
	key, err := keyutil.MakeEllipticPrivateKeyPEM()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "sa.key")
	require.NoError(t, os.WriteFile(file, key, 0o600))
	return []string{
		"--etcd-servers=" + etcd, "--secure-port=" + strconv.Itoa(free.Addr().(*net.TCPAddr).Port), "--authorization-mode=RBAC",
		"--service-account-issuer=https://issuer.example", "--service-account-key-file=" + file, "--service-account-signing-key-file=" + file,
	}
}

// TestAPIServerStandInRefuses wants kube-apiserver's own words for what it refuses.
func TestAPIServerStandInRefuses(t *testing.T) {
	const etcd = "--etcd-servers=http://127.0.0.1:1"
	signed := apiServerArgs(t, "http://127.0.0.1:1")
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "--etcd-servers must be specified"},
		{append(signed, "--etcd-servers=here"), "here"},
		{append(signed, "--bind-address=192.0.2.1"), "is not on loopback"},
		{append(signed, "--bind-address=localhost"), `invalid argument "localhost" for "--bind-address" flag: failed to parse IP: "localhost"`},
		{append(signed, "--secure-port=abc"), `invalid argument "abc" for "--secure-port" flag: strconv.ParseInt: parsing "abc": invalid syntax`},
		{append(signed, "--secure-port=0"), "--secure-port 0 must be between 1 and 65535, inclusive. It cannot be turned off with 0"},
		{append(signed, "--secure_port=0"), "--secure-port 0 must be between 1 and 65535, inclusive. It cannot be turned off with 0"},
		{append(signed, "--no-such-flag"), "unknown flag: --no-such-flag"},
		{append(signed, "here"), `"kube-apiserver" does not take any arguments, got ["here"]`},
		{append(signed, "--version=soon"), `invalid argument "soon" for "--version" flag`},
		{[]string{etcd}, "service-account-issuer is a required flag"},
		{[]string{etcd}, "--service-account-signing-key-file and --service-account-issuer are required flags"},
		{[]string{etcd, "--service-account-issuer=https://issuer.example"}, "--service-account-signing-key-file, --service-account-issuer, and --api-audiences should be specified together"},
	} {
		assert.ErrorContains(t, playAPIServer(t.Context(), test.args, io.Discard, io.Discard), test.want, "%v", test.args)
	}
}

// TestAPIServerStandInSays wants what kube-apiserver says of itself, whatever else is asked for.
func TestAPIServerStandInSays(t *testing.T) {
	for args, want := range map[string]string{
		"--version":               "Kubernetes " + linked.Release() + "\n",
		"--version=true":          "Kubernetes " + linked.Release() + "\n",
		"--version=raw":           `GitVersion:"` + linked.Release() + `"`,
		"--secure-port 1 --help":  "--etcd-servers",
		"-h":                      "--etcd-servers",
		"--version --secure_port": "",
	} {
		var stdout strings.Builder
		err := playAPIServer(t.Context(), strings.Fields(args), &stdout, io.Discard)
		if want == "" {
			assert.ErrorContains(t, err, "flag needs an argument: --secure_port", args)
			continue
		}
		require.NoError(t, err, args)
		assert.Contains(t, stdout.String(), want, args)
	}
}
