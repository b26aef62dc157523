package etcdmain

import (
	"context"
	"flag"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// honouredFlags do what they do with the original, as far as a client can see.
var honouredFlags = []string{
	"listen-client-urls", "listen-client-http-urls", "listen-metrics-urls", "advertise-client-urls",
	"initial-advertise-peer-urls", "name",
	"quota-backend-bytes", "max-txn-ops", "max-request-bytes", "max-concurrent-streams",
	"watch-progress-notify-interval",
	"grpc-keepalive-min-time", "grpc-keepalive-interval", "grpc-keepalive-timeout", "enable-grpc-gateway",
	"enable-pprof",
	"auto-compaction-retention", "auto-compaction-mode",
	"cert-file", "key-file", "client-cert-auth", "client-crl-file", "client-cert-allowed-hostname",
	"trusted-ca-file", "auto-tls",
	"self-signed-cert-validity", "cipher-suites", "tls-min-version", "tls-max-version",
	"logger", "log-outputs", "log-level", "log-format", "enable-log-rotation", "log-rotation-config-json",
	"version",
}

// harmlessFlags are about what an etcd in memory of one member does not have: disks, peers,
// elections, users; or about what no client sees.
var harmlessFlags = []string{
	"data-dir", "wal-dir", "max-snapshots", "max-wals", "snapshot-count", "snapshot-catchup-entries",
	"unsafe-no-fsync", "memory-mlock",
	"backend-bbolt-freelist-type", "backend-batch-interval", "backend-batch-limit",
	"bootstrap-defrag-threshold-megabytes",
	"compaction-batch-limit", "compaction-sleep-interval", "corrupt-check-time", "compact-hash-check-time",
	"downgrade-check-time",
	"listen-peer-urls", "heartbeat-interval", "election-timeout", "initial-election-tick-advance",
	"raft-read-timeout", "raft-write-timeout",
	"initial-cluster", "initial-cluster-token", "strict-reconfig-check", "pre-vote", "force-new-cluster",
	"max-learners",
	"discovery-dial-timeout", "discovery-request-timeout", "discovery-keepalive-time",
	"discovery-keepalive-timeout",
	"discovery-insecure-transport", "discovery-insecure-skip-tls-verify", "discovery-cert", "discovery-key",
	"discovery-cacert",
	"discovery-user", "discovery-password", "discovery-srv-name", "discovery-fallback",
	"client-cert-file", "client-key-file", "peer-cert-file", "peer-key-file", "peer-client-cert-file",
	"peer-client-key-file",
	"peer-client-cert-auth", "peer-trusted-ca-file", "peer-auto-tls", "peer-crl-file", "peer-cert-allowed-cn",
	"peer-cert-allowed-hostname", "peer-skip-client-san-verification",
	"bcrypt-cost", "auth-token-ttl", "socket-reuse-port", "socket-reuse-address", "metrics", "feature-gates",
	"warning-apply-duration", "warning-unary-request-duration", "v2-deprecation",
	"distributed-tracing-address", "distributed-tracing-service-name", "distributed-tracing-instance-id",
	"distributed-tracing-sampling-rate",
}

// TestFlags has each flag of the original in one class. What a class has no effect of is on
// the page that says so.
func TestFlags(t *testing.T) {
	flags := newFlags(io.Discard)
	classes := map[string][]string{"honoured": honouredFlags, "harmless": harmlessFlags, "ignored": ignoredFlags, "refused": refusedFlags}
	class := map[string]string{}
	for name, members := range classes {
		for _, member := range members {
			assert.Empty(t, class[member], "--%s is %s, too", member, name)
			assert.NotNil(t, flags.Lookup(member), "the original has no --%s", member)
			class[member] = name
		}
	}
	flags.VisitAll(func(f *flag.Flag) { assert.NotEmpty(t, class[f.Name], "--%s is in no class", f.Name) })
	for name := range originalFlags(t) {
		assert.NotEmpty(t, class[name], "the original's --%s is in no class", name)
	}
	page, err := os.ReadFile("../../../docs/moving.md")
	require.NoError(t, err)
	for _, name := range append(harmlessFlags, refusedFlags...) {
		assert.Contains(t, string(page), "`--"+name+"`", "docs/moving.md")
	}
}

// originalFlags are those that the original's program adds to its library's: their names are in
// its source alone.
func originalFlags(t *testing.T) map[string]bool {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "go.etcd.io/etcd/server/v3").Output()
	require.NoError(t, err)
	source, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "etcdmain", "config.go"))
	require.NoError(t, err)
	names := map[string]bool{}
	for _, match := range regexp.MustCompile(`fs\.\w+\([^"\n]*"([a-z0-9-]+)"`).FindAllSubmatch(source, -1) {
		names[string(match[1])] = true
	}
	_, list, found := strings.Cut(string(source), "ignored = []string{")
	require.True(t, found)
	list, _, _ = strings.Cut(list, "}")
	for _, match := range regexp.MustCompile(`"([a-z.-]+)"`).FindAllStringSubmatch(list, -1) {
		names[match[1]] = true
	}
	assert.Greater(t, len(names), 15, "%v", maps.Keys(names))
	return names
}

// running is a program that runs, in this process.
type running struct {
	log    string // a file
	client *clientv3.Client
}

// waitTimeout bounds waiting on a busy machine.
const waitTimeout = time.Minute

// run runs the program until the test ends, and connects to an endpoint.
func run(t *testing.T, endpoint string, args ...string) *running {
	t.Helper()
	e := &running{log: filepath.Join(t.TempDir(), "log")}
	ctx, interrupt := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, append(args, "--log-outputs="+e.log), io.Discard, io.Discard) }()
	t.Cleanup(func() {
		interrupt()
		assert.NoError(t, <-ended)
	})
	var err error
	e.client, err = clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: waitTimeout})
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.client.Close() })
	_, err = e.client.Status(t.Context(), endpoint)
	require.NoError(t, err)
	return e
}

// freeURL is a URL at which nothing listens.
func freeURL(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { assert.NoError(t, l.Close()) }()
	return "http://" + l.Addr().String()
}

// TestListens listens wherever it is told to, by flags and by the environment.
func TestListens(t *testing.T) {
	first, second, metrics := freeURL(t), freeURL(t), freeURL(t)
	socket := "unix://" + filepath.Join(t.TempDir(), "s")
	t.Setenv("ETCD_LISTEN_CLIENT_URLS", strings.Join([]string{first, second, socket}, ","))
	t.Setenv("ETCD_ADVERTISE_CLIENT_URLS", "http://localhost:1")
	t.Setenv("ETCD_VERSION", "v3.4.0") // images have it
	e := run(t, first, "--listen-metrics-urls="+metrics, "--name=m0", "--initial-advertise-peer-urls=http://localhost:2")
	_, err := e.client.Put(t.Context(), "flake", "falls")
	require.NoError(t, err)
	for _, endpoint := range []string{second, socket} {
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: waitTimeout})
		require.NoError(t, err)
		got, err := client.Get(t.Context(), "flake")
		require.NoError(t, err, endpoint)
		assert.EqualValues(t, 1, got.Count, endpoint)
		require.NoError(t, client.Close())
	}
	assert.Contains(t, ask(t, http.MethodGet, metrics+"/metrics", ""), "etcd_server_has_leader 1")
	members, err := e.client.MemberList(t.Context())
	require.NoError(t, err)
	member := members.Members[0]
	assert.Equal(t, []string{"m0", "http://localhost:2", "http://localhost:1"}, []string{member.Name, member.PeerURLs[0], member.ClientURLs[0]})
	said, err := os.ReadFile(e.log)
	require.NoError(t, err)
	assert.Contains(t, string(said), `"msg":"ready to serve client requests"`)
}

// TestShadowed refuses a flag and its variable, as the original does.
func TestShadowed(t *testing.T) {
	t.Setenv("ETCD_NAME", "m0")
	assert.ErrorContains(t, Run(t.Context(), []string{"--name=m0"}, io.Discard, io.Discard), "conflicting environment variable ETCD_NAME is shadowed")
	t.Setenv("ETCD_MAX_TXN_OPS", "many")
	assert.ErrorContains(t, Run(t.Context(), nil, io.Discard, io.Discard), `invalid value "many" for ETCD_MAX_TXN_OPS`)
}

// ask asks over HTTP and returns the body of the answer.
func ask(t *testing.T, method, url, body string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(text)
}

// TestObeys gives flags, and looks for what a client sees of them.
func TestObeys(t *testing.T) {
	endpoint := freeURL(t)
	e := run(t, endpoint, "--listen-client-urls="+endpoint, "--advertise-client-urls="+endpoint, "--enable-pprof",
		"--watch-progress-notify-interval=100ms", "--max-txn-ops=2", "--max-request-bytes=2000", "--quota-backend-bytes=10000", "--auto-compaction-retention=1s")
	t.Run("progress", func(t *testing.T) {
		notified := <-e.client.Watch(t.Context(), "flake", clientv3.WithProgressNotify())
		assert.True(t, notified.IsProgressNotify(), "%v", notified)
	})
	t.Run("gateway", func(t *testing.T) { // base64
		assert.Contains(t, ask(t, http.MethodPost, endpoint+"/v3/kv/put", `{"key": "Zmxha2U=", "value": "ZmFsbHM="}`), `"revision":"2"`)
		assert.Contains(t, ask(t, http.MethodPost, endpoint+"/v3/kv/range", `{"key": "Zmxha2U="}`), `"value":"ZmFsbHM="`)
	})
	t.Run("profiles", func(t *testing.T) {
		assert.Contains(t, ask(t, http.MethodGet, endpoint+"/debug/pprof/goroutine?debug=1", ""), "goroutine profile: total")
	})
	t.Run("limits", func(t *testing.T) {
		put := clientv3.OpPut("a", "b")
		_, err := e.client.Txn(t.Context()).Then(put, clientv3.OpPut("c", "d"), clientv3.OpPut("e", "f")).Commit()
		require.ErrorIs(t, err, rpctypes.ErrTooManyOps)
		_, err = e.client.Put(t.Context(), "large", strings.Repeat("x", 2001))
		require.ErrorIs(t, err, rpctypes.ErrRequestTooLarge)
	})
	t.Run("compaction", func(t *testing.T) {
		var err error
		require.Eventually(t, func() bool {
			_, err = e.client.Get(t.Context(), "flake", clientv3.WithRev(1))
			return err != nil
		}, waitTimeout, 100*time.Millisecond)
		require.ErrorIs(t, err, rpctypes.ErrCompacted)
	})
	t.Run("quota", func(t *testing.T) {
		var err error
		for i := 0; i < 100 && err == nil; i++ {
			_, err = e.client.Put(t.Context(), "key"+strings.Repeat("x", i), strings.Repeat("x", 1000))
		}
		require.ErrorIs(t, err, rpctypes.ErrNoSpace)
		alarms, err := e.client.AlarmList(t.Context())
		require.NoError(t, err)
		assert.Len(t, alarms.Alarms, 1)
		_, err = e.client.Delete(t.Context(), "key")
		require.NoError(t, err)
	})
}
