package sample

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSampleAPIServer runs sample-apiserver, which stores in "snowglobe etcd", behind "snowglobe up"
// without flags: in the order, and with the manifests, of docs/guides/aggregated.md.
func TestSampleAPIServer(t *testing.T) {
	t.Chdir(t.TempDir())
	snowglobe, sample := build(t, "../../../cmd/snowglobe", "."), build(t, ".", "k8s.io/sample-apiserver")
	output(t, snowglobe, "assets", "bin")
	folder := working(t)
	start(t, "is up at", snowglobe, "etcd", "--listen", "unix://"+filepath.Join(folder, "etcd.sock"))
	start(t, "Ctrl-C", snowglobe, "up", "--kubeconfig", "admin")
	admin := kubectl{t: t, kubeconfig: "admin"}

	port := freePort(t)
	admin.apply("ns.yaml", "sa.yaml", "auth-delegator.yaml", "auth-reader.yaml", "rbac.yaml", "rbac-bind.yaml", "apiservice.yaml")
	// Its manifests of v1.37.1 lack what MutatingAdmissionPolicy needs, which is on by default now.
	admin.run("create", "clusterrole", "mutating", "--verb=get,list,watch", "--resource=mutatingadmissionpolicies,mutatingadmissionpolicybindings")
	admin.run("create", "clusterrolebinding", "mutating", "--clusterrole=mutating", "--serviceaccount=wardle:apiserver")
	admin.run("create", "service", "externalname", "api", "-n", "wardle", "--external-name=localhost")
	admin.run("patch", "apiservice", "v1alpha1.wardle.example.com", "--type=merge", "-p", `{"spec":{"service":{"port":`+port+`}}}`)
	server := admin.as("system:serviceaccount:wardle:apiserver", admin.run("create", "token", "apiserver", "-n", "wardle"))
	start(t, "Serving securely", sample, "--etcd-servers=unix://"+filepath.Join(folder, "etcd.sock"), "--cert-dir=certificates",
		"--bind-address=127.0.0.1", "--secure-port="+port,
		"--kubeconfig="+server, "--authentication-kubeconfig="+server, "--authorization-kubeconfig="+server)

	admin.run("wait", "--for=condition=Available", "--timeout=1m", "apiservice/v1alpha1.wardle.example.com")
	admin.run("apply", "-f", filepath.Join(artifacts(t), "flunders", "01-flunder.yaml"))
	assert.Equal(t, "flunder.wardle.example.com/my-first-flunder", admin.run("get", "flunders", "-o", "name"))

	admin.run("create", "role", "reader", "--verb=get,list,watch", "--resource=flunders.wardle.example.com")
	admin.run("create", "rolebinding", "reader", "--role=reader", "--serviceaccount=default:reader")
	admin.run("create", "serviceaccount", "reader")
	reader := kubectl{t: t, kubeconfig: admin.as("system:serviceaccount:default:reader", admin.run("create", "token", "reader"))}
	assert.Equal(t, "flunder.wardle.example.com/my-first-flunder", reader.run("get", "flunders", "-o", "name"))
	watched := start(t, "my-first-flunder", "bin/kubectl", "--kubeconfig", reader.kubeconfig, "get", "flunders", "--watch", "-o", "name")
	second := "second-flunder"
	admin.create(second)
	watched.await(t, second)
	out, err := reader.command("delete", "flunder", second).CombinedOutput()
	assert.Error(t, err)
	assert.Contains(t, string(out), `flunders.wardle.example.com "`+second+`" is forbidden: User "system:serviceaccount:default:reader" cannot delete`)
}

// build builds a program in a folder.
func build(t *testing.T, folder, pkg string) string {
	t.Helper()
	program := filepath.Join(working(t), filepath.Base(pkg), "program")
	command := exec.CommandContext(t.Context(), "go", "build", "-o", program, pkg)
	command.Dir = filepath.Join(source, folder)
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// source is the folder of this package.
var source = func() string {
	folder, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	return folder
}()

// artifacts is the folder with sample-apiserver's manifests.
func artifacts(t *testing.T) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/sample-apiserver")
	command.Dir = source
	out, err := command.Output()
	require.NoError(t, err)
	return filepath.Join(strings.TrimSpace(string(out)), "artifacts")
}

func working(t *testing.T) string {
	t.Helper()
	folder, err := os.Getwd()
	require.NoError(t, err)
	return folder
}

// freePort returns a port on which nothing listens: sample-apiserver is told it before the
// aggregator is.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
}

// kubectl is the one of "snowglobe assets", with a kubeconfig.
type kubectl struct {
	t          *testing.T
	kubeconfig string
}

func (k kubectl) command(args ...string) *exec.Cmd {
	return exec.CommandContext(k.t.Context(), "bin/kubectl", append([]string{"--kubeconfig", k.kubeconfig}, args...)...)
}

func (k kubectl) run(args ...string) string {
	k.t.Helper()
	command, said := k.command(args...), &strings.Builder{}
	command.Stderr = said
	out, err := command.Output()
	require.NoError(k.t, err, "kubectl %s: %s", strings.Join(args, " "), said)
	return strings.TrimSpace(string(out))
}

// apply applies manifests of sample-apiserver.
func (k kubectl) apply(names ...string) {
	k.t.Helper()
	for _, name := range names {
		k.run("apply", "-f", filepath.Join(artifacts(k.t), "example", name))
	}
}

func (k kubectl) create(flunder string) {
	k.t.Helper()
	command := k.command("create", "-f", "-")
	command.Stdin = strings.NewReader(`{"apiVersion": "wardle.example.com/v1alpha1", "kind": "Flunder", "metadata": {"name": "` + flunder + `"}}`)
	out, err := command.CombinedOutput()
	require.NoError(k.t, err, "%s", out)
}

// as returns a kubeconfig with which a user shows a token.
func (k kubectl) as(user, token string) (kubeconfig string) {
	k.t.Helper()
	content, err := os.ReadFile(k.kubeconfig)
	require.NoError(k.t, err)
	kubeconfig = strings.ReplaceAll(user, ":", "-")
	require.NoError(k.t, os.WriteFile(kubeconfig, content, 0o600))
	other := kubectl{k.t, kubeconfig}
	other.run("config", "set-credentials", user, "--token", token)
	other.run("config", "set-context", "--current", "--user", user)
	return kubeconfig
}
