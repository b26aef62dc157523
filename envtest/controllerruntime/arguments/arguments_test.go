package arguments_test

//lint:file-ignore SA1019 deprecated fields are honoured

import (
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"snowglobe.test/envtest/controllerruntime/arguments"
)

const etcd = "http://127.0.0.1:2379"

// names are envtest's own default arguments, and one that it has no default of.
var names = []string{
	"etcd-servers", "service-cluster-ip-range", "allow-privileged", "disable-admission-plugins", "cert-dir", "authorization-mode", "bind-address",
	"secure-port", "service-account-issuer", "service-account-key-file", "service-account-signing-key-file", "insecure-port", "v",
}

// rawArg is an Arg of somebody's own.
type rawArg func(defaults []string) []string

func (a rawArg) Append(...string) envtest.Arg         { return a }
func (a rawArg) Get(defaults []string) (got []string) { return a(defaults) }

// methods are the ways of Configure to change an argument.
var methods = map[string]func(args *envtest.Arguments, name string){
	"leave":             func(*envtest.Arguments, string) {},
	"Disable":           func(args *envtest.Arguments, name string) { args.Disable(name) },
	"Enable":            func(args *envtest.Arguments, name string) { args.Enable(name) },
	"Append":            func(args *envtest.Arguments, name string) { args.Append(name, "more", "still more") },
	"AppendNoDefaults":  func(args *envtest.Arguments, name string) { args.AppendNoDefaults(name, "alone") },
	"Set":               func(args *envtest.Arguments, name string) { args.Set(name, "one", "two") },
	"Set to nothing":    func(args *envtest.Arguments, name string) { args.Set(name, "") },
	"Set without value": func(args *envtest.Arguments, name string) { args.Set(name) },
	"SetRaw": func(args *envtest.Arguments, name string) {
		args.SetRaw(name, rawArg(func(defaults []string) []string { return append(slices.Clone(defaults), "raw") }))
	},
	"Disable and Append": func(args *envtest.Arguments, name string) { args.Disable(name).Append(name, "alone") },
}

// TestParity asks controller-runtime for the arguments that it passes to kube-apiserver, and
// wants the same.
func TestParity(t *testing.T) {
	for _, name := range names {
		for _, method := range slices.Sorted(maps.Keys(methods)) {
			original, ours := newServer(t), newServer(t)
			ours.CertDir = original.CertDir
			methods[method](original.Configure(), name)
			methods[method](ours.Configure(), name)
			assert.Equal(t, passed(t, original), arguments.Of(ours, etcd), "%s of %s", method, name)
		}
	}
}

func newServer(t *testing.T) *envtest.APIServer {
	server := &envtest.APIServer{CertDir: t.TempDir()}
	server.SecureServing.Address, server.SecureServing.Port = "127.0.0.1", "6443"
	return server
}

// passed are the arguments of the program that controller-runtime starts, without that of the
// authority of its users, which is the harness's. The issuer is the one difference.
func passed(t *testing.T, server *envtest.APIServer) []string {
	t.Helper()
	file, program := filepath.Join(server.CertDir, "arguments"), filepath.Join(server.CertDir, "kube-apiserver")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\nprintf '%s\\n' \"$@\" > '"+file+"'\n"), 0o700))
	at, err := url.Parse(etcd)
	require.NoError(t, err)
	server.EtcdURL, server.Path = at, program
	require.Error(t, server.Start(), "a program that ends at once is no server")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(strings.ReplaceAll(string(text), "https://127.0.0.1:6443/", arguments.Issuer), "\n"), "\n")
	return slices.DeleteFunc(lines, func(arg string) bool { return strings.HasPrefix(arg, "--client-ca-file=") })
}

// TestArgs has the deprecated field replace defaults, as it does there.
func TestArgs(t *testing.T) {
	server := newServer(t)
	server.Args = append(slices.Clone(envtest.DefaultKubeAPIServerFlags), "--authorization-mode=Webhook", "--v=2")
	args := arguments.Of(server, etcd)
	assert.NotContains(t, args, "--authorization-mode=RBAC")
	assert.Contains(t, args, "--allow-privileged=true")
	assert.Equal(t, []string{"--authorization-mode=Webhook", "--v=2"}, args[len(args)-2:])
}
