package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/rpc/jsonrpc"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/session"
	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/storage/cluster"
	"snowglobe.test/envtest/storage/embedded"
	"snowglobe.test/envtest/storage/external"
	"snowglobe.test/envtest/storage/memory"
	"snowglobe.test/internal/listeners"
	"snowglobe.test/internal/sample"
)

// exposure is a row of the table in docs/limits.md: what something listens on, and who can
// use that.
type exposure struct{ listens, who string }

// What things listen on.
const (
	nothing = "nothing"
	port    = "a port"
	socket  = "a unix socket"
)

// Who can use it, as the last cell of a row begins.
const (
	whoProcess     = "only the process"
	whoUser        = "your user"
	whoCredentials = "with credentials"
	whoAnybody     = "every user"
)

var tableRow = regexp.MustCompile(`(?m)^\| ([^|]+?) \| ([^|]+?) \| ([^|]+?) \|$`)

// documentedExposure are the rows under "Who can connect" in docs/limits.md.
func documentedExposure(t *testing.T) map[string]exposure {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "limits.md"))
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(page), "\n## Who can connect\n")
	require.True(t, ok, "docs/limits.md has no such section")
	section, _, _ = strings.Cut(section, "\n## ")
	told := map[string]exposure{}
	for _, row := range tableRow.FindAllStringSubmatch(section, -1)[2:] { // below the head
		require.NotContains(t, told, row[1], "twice")
		told[row[1]] = exposure{row[2], row[3]}
	}
	return told
}

// TestWhoCanConnect runs all there is, as whoever has the umask 0, looks at what listens,
// and tries to use it without credentials. The documents tell of each, and of no other.
func TestWhoCanConnect(t *testing.T) {
	sample.Long(t)
	told := documentedExposure(t)
	found := map[string]bool{}
	for name, list := range map[string]func(*testing.T) map[string][]listeners.Listener{
		"stores": listStores, "libraries": listLibraries, "programs": listPrograms, "commands": listCommands, "fakes": listFakes,
	} {
		t.Run(name, func(t *testing.T) {
			for name, all := range list(t) {
				found[name] = true
				got := exposureOf(t, all)
				assert.Equal(t, told[name].listens, got.listens, "what %s listens on: %v", name, all)
				assert.True(t, strings.HasPrefix(told[name].who, got.who), "who can use %s at %v: %s, and the documents say %q", name, all, got.who, told[name].who)
			}
		})
	}
	assert.ElementsMatch(t, slices.Collect(maps.Keys(told)), slices.Collect(maps.Keys(found)))
}

// exposureOf looks at listeners, and tries the ports.
func exposureOf(t *testing.T, all []listeners.Listener) exposure {
	t.Helper()
	if len(all) == 0 {
		return exposure{nothing, whoProcess}
	}
	listens := map[string]bool{}
	order := []string{whoUser, whoCredentials, whoAnybody}
	worst := 0
	for _, l := range all {
		who := whoAnybody
		switch l.Network {
		case listeners.Unix:
			listens[socket] = true
			open, err := l.OpenToOthers()
			require.NoError(t, err)
			if open == "" {
				who = whoUser
			}
		case listeners.TCP:
			listens[port] = true
			if err := intrude(l.Address); err == nil {
				t.Logf("%s lets everybody in", l)
			} else {
				who = whoCredentials
			}
		default:
			listens[l.String()] = true
		}
		worst = max(worst, slices.Index(order, who))
	}
	return exposure{strings.Join(slices.Sorted(maps.Keys(listens)), " and "), order[worst]}
}

// intrudeTimeout bounds waiting for an answer, of which some ports have none.
const intrudeTimeout = 10 * time.Second

// desired is what an intruder would like to read.
var desired = []string{"/api/v1/secrets", "/metrics", "/debug/pprof/", "/debug/pprof/cmdline", "/debug/flags/v", "/logs/", "/configz", "/debug/vars"}

// written is what an intruder would like to write: to make itself an admin, to have the API
// server log or run something, to reach a cluster's raft.
var written = []struct{ method, path, body string }{
	{http.MethodPost, "/api/v1/namespaces/default/configmaps", `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "intruder"}}`},
	{http.MethodPost, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", `{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "intruder"},
		"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
		"subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:anonymous"}]}`},
	{http.MethodDelete, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/cluster-admin", ""},
	{http.MethodPut, "/debug/flags/v", "9"},
	{http.MethodPost, "/run/default/pod/container?cmd=id", ""},
	{http.MethodPost, "/raft", "x"},
}

// intrude tries to read and to write at a port without credentials. An error is a refusal of
// those who have none, and nothing else: what is not understood counts as open.
func intrude(address string) error {
	for _, path := range desired {
		if err := intrudeAt(address, http.MethodGet, path, ""); err == nil {
			return nil
		}
	}
	for _, w := range written {
		if err := intrudeAt(address, w.method, w.path, w.body); err == nil {
			return nil
		}
	}
	return errors.New("it wants credentials for everything")
}

func intrudeAt(address, method, path, body string) error {
	conn, err := net.DialTimeout("tcp", address, intrudeTimeout)
	if err != nil {
		return nil
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(intrudeTimeout))
	secure := tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	if secure.Handshake() != nil {
		return nil // it has no TLS
	}
	if _, err := fmt.Fprintf(secure, "%s %s HTTP/1.1\r\nHost: intruder\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", method, path, len(body), body); err != nil {
		return refusedCertificate(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(secure), nil)
	if err != nil {
		return refusedCertificate(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden {
		return errors.New(answer.Status)
	}
	return nil
}

// refusedCertificate returns err if it says that a client certificate is wanted.
func refusedCertificate(err error) error {
	var alert *net.OpError
	if errors.As(err, &alert) && alert.Op == "remote error" && strings.Contains(err.Error(), "certificate required") {
		return err
	}
	return nil
}

// added returns what this process listens on more than before.
func added(t *testing.T, before []listeners.Listener) []listeners.Listener {
	t.Helper()
	return slices.DeleteFunc(listenersOf(t, os.Getpid()), func(l listeners.Listener) bool { return slices.Contains(before, l) })
}

func listenersOf(t *testing.T, pid int) []listeners.Listener {
	t.Helper()
	all, err := listeners.Of(pid)
	require.NoError(t, err)
	return all
}

// listStores runs each store in this process, and then a control plane.
func listStores(t *testing.T) map[string][]listeners.Listener {
	all := map[string][]listeners.Listener{}
	members, err := cluster.New(cluster.Config{})
	require.NoError(t, err)
	single := embedded.New(embedded.Config{})
	for _, c := range []struct {
		name  string
		store storage.Backend
	}{{"the `memory` store", memory.New("exposure")}, {"the `cluster` store", members}, {"the `embedded` store", single}} {
		before := listenersOf(t, os.Getpid())
		require.NoError(t, c.store.Start(t.Context()))
		t.Cleanup(func() { assert.NoError(t, c.store.Stop(context.Background())) })
		all[c.name] = added(t, before)
	}
	other, err := external.New(external.Config{URLs: single.Endpoints().URLs})
	require.NoError(t, err)
	before := listenersOf(t, os.Getpid())
	require.NoError(t, other.Start(t.Context()))
	all["an `external` store"] = added(t, before)

	cp, err := envtest.Launch(t.Context(), envtest.WithStore(memory.New("plain")))
	require.NoError(t, err)
	all["a control plane of `envtest`"] = added(t, before)
	require.NoError(t, cp.Stop(t.Context()))
	return all
}

// unmasked is a program that runs with the umask 0.
type unmasked struct {
	pid   int
	lines *bufio.Scanner // of its standard output
}

// runProgram runs one of the programs that this test binary can be, until the test ends.
func runProgram(t *testing.T, name string, args ...string) *unmasked {
	t.Helper()
	command := exec.Command("sh", append([]string{"-c", `umask 0; exec "$0" "$@"`, name}, args...)...)
	command.Dir = t.TempDir()
	stdout, err := command.StdoutPipe()
	require.NoError(t, err)
	said, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	require.NoError(t, err)
	command.Stderr = said
	require.NoError(t, command.Start())
	p := &unmasked{pid: command.Process.Pid, lines: bufio.NewScanner(stdout)}
	t.Cleanup(func() {
		assert.NoError(t, command.Process.Signal(syscall.SIGTERM))
		_, _ = io.Copy(io.Discard, stdout)
		_ = command.Wait() // whatever its exit code says of SIGTERM
		_ = said.Close()
		if content, err := os.ReadFile(said.Name()); err == nil && t.Failed() {
			t.Logf("%s %s:\n%s", name, strings.Join(args, " "), content)
		}
	})
	return p
}

// says waits for a line of a program that begins so, and returns the rest of it.
func (p *unmasked) says(t *testing.T, begin string) string {
	t.Helper()
	for p.lines.Scan() {
		if rest, ok := strings.CutPrefix(p.lines.Text(), begin); ok {
			return rest
		}
	}
	t.Fatalf("it ended without saying %q", begin)
	return ""
}

// listPrograms runs each program in each way in which it listens elsewhere.
func listPrograms(t *testing.T) map[string][]listeners.Listener {
	all := map[string][]listeners.Listener{}
	folder := t.TempDir()
	require.NoError(t, os.Chmod(folder, 0o700))
	files := newEtcdFiles(t)

	plain := runProgram(t, "snowglobe", "etcd", "--listen", "127.0.0.1:0")
	endpoint := plain.says(t, "etcd in memory is up at ")
	all["`snowglobe etcd`"] = listenersOf(t, plain.pid)
	onSocket := runProgram(t, "snowglobe", "etcd", "--listen", "unix://"+filepath.Join(folder, "etcd"))
	onSocket.says(t, "etcd in memory is up at ")
	all["`snowglobe etcd --listen unix://FILE`"] = listenersOf(t, onSocket.pid)
	secure := runProgram(t, "snowglobe", append([]string{"etcd", "--listen", "127.0.0.1:0"}, files.server()...)...)
	secure.says(t, "etcd in memory is up at ")
	all["`snowglobe etcd --client-cert-auth`"] = listenersOf(t, secure.pid)

	for name, args := range map[string][]string{
		"`snowglobe up`": nil, "`snowglobe up --store embedded`": {"--store", "embedded"},
		"`snowglobe up --store URL`": {"--store", endpoint}, "`snowglobe up --controllers --nodes 1`": {"--controllers", "--nodes", "1"},
	} {
		up := runProgram(t, "snowglobe", append([]string{"up"}, args...)...)
		up.says(t, "Kubernetes ")
		all[name] = listenersOf(t, up.pid)
	}

	serve := runProgram(t, "snowglobe", "serve", "--socket", filepath.Join(folder, "serve"))
	serve.says(t, "serving control planes at ")
	all["`snowglobe serve`"] = listenersOf(t, serve.pid)
	conn, err := net.Dial("unix", filepath.Join(folder, "serve"))
	require.NoError(t, err)
	calls := jsonrpc.NewClient(conn)
	defer func() { _ = calls.Close() }()
	require.NoError(t, calls.Call(session.Start, session.Options{Version: session.Version, Test: t.Name()}, &session.Started{}))
	all["a control plane of `snowglobe serve`"] = slices.DeleteFunc(listenersOf(t, serve.pid), func(l listeners.Listener) bool {
		return slices.Contains(all["`snowglobe serve`"], l)
	})

	for name, args := range map[string][]string{
		"`etcd` of `snowglobe assets`":                       {"--listen-client-urls=http://127.0.0.1:0"},
		"`etcd` of `snowglobe assets`, with `unix://` URLs":  {"--listen-client-urls=unix://" + filepath.Join(folder, "stand-in")},
		"`etcd` of `snowglobe assets`, `--client-cert-auth`": append(files.server(), "--listen-client-urls=https://127.0.0.1:0"),
	} {
		all[name] = awaitListener(t, runProgram(t, "etcd", append(args, "--advertise-client-urls=http://127.0.0.1:0")...).pid)
	}
	apiServer := runProgram(t, "kube-apiserver", append(apiServerArgs(t, endpoint), "--cert-dir="+folder)...)
	all["`kube-apiserver` of `snowglobe assets`"] = awaitListener(t, apiServer.pid)
	awaitReady(t, all["`kube-apiserver` of `snowglobe assets`"][0].Address)
	return all
}

// awaitListener waits until a program listens that says nothing.
func awaitListener(t *testing.T, pid int) (all []listeners.Listener) {
	t.Helper()
	require.Eventually(t, func() bool {
		all = listenersOf(t, pid)
		return len(all) > 0
	}, waitTimeout, 10*time.Millisecond)
	return all
}

// awaitReady waits until an API server is.
func awaitReady(t *testing.T, address string) {
	t.Helper()
	through := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer through.CloseIdleConnections()
	client := &http.Client{Transport: through}
	require.Eventually(t, func() bool {
		answer, err := client.Get(fmt.Sprintf("https://%s/readyz", address))
		if err != nil {
			return false
		}
		defer func() { _ = answer.Body.Close() }()
		return answer.StatusCode == http.StatusOK
	}, waitTimeout, 10*time.Millisecond)
}
