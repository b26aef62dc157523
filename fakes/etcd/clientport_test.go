package etcd

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	etcdversion "go.etcd.io/etcd/api/v3/version"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/test/bufconn"

	"snowglobe.test/fakes/etcd/internal/services"
)

// TestHTTP compares what an embedded etcd and this one answer over HTTP on the
// port that gRPC clients use, without an alarm and under each.
func TestHTTP(t *testing.T) {
	real, here := startReal(t), dialSocket(t, newServer(t, Config{})).Client
	awaitVersion(t, real)
	requests := []string{
		"GET /health", "GET /health?serializable=true", "GET /health?exclude=NOSPACE", "POST /health",
		"GET /health?exclude=NOSPACE&exclude=CORRUPT", "GET /health/x",
		"GET /version", "PUT /version", "POST /debug/vars", "GET /nothing", "GET /",
		"GET /livez", "GET /livez?verbose", "POST /livez", "GET /livez/serializable_read?verbose",
		"GET /readyz", "GET /readyz?exclude=data_corruption", "POST /readyz",
		"GET /readyz/data_corruption?verbose", "GET /readyz/linearizable_read", "GET /readyz/non_learner",
	}
	states := []struct {
		name  string
		enter func(c *clientv3.Client) error
	}{
		{"no alarm", func(*clientv3.Client) error { return nil }},
		{"no space", func(c *clientv3.Client) error { _, err := raise(pb.AlarmType_NOSPACE)(t.Context(), c); return err }},
		{"corrupt", func(c *clientv3.Client) error {
			if _, err := c.AlarmDisarm(t.Context(), &clientv3.AlarmMember{}); err != nil {
				return err
			}
			_, err := raise(pb.AlarmType_CORRUPT)(t.Context(), c)
			return err
		}},
	}
	for _, state := range states {
		for _, c := range []*clientv3.Client{real, here} {
			require.NoError(t, state.enter(c))
		}
		for _, request := range requests {
			assert.Empty(t, cmp.Diff(askHTTP(t, real, request), askHTTP(t, here, request)), "%s, %s: -embedded +this", request, state.name)
		}
	}
}

// TestHTTPMetrics compares the metrics with those of an embedded etcd after the
// same writes. Metrics that mean nothing for a store in memory are left out.
func TestHTTPMetrics(t *testing.T) {
	real, here := startReal(t), dialSocket(t, newServer(t, Config{})).Client
	for _, c := range []*clientv3.Client{real, here} {
		for i := range 3 {
			_, err := c.Put(t.Context(), fmt.Sprint("k", i), "v")
			require.NoError(t, err)
		}
		_, err := c.Compact(t.Context(), 3, clientv3.WithCompactPhysical())
		require.NoError(t, err)
		<-c.Watch(t.Context(), "k", clientv3.WithCreatedNotify())
	}
	awaitVersion(t, real)
	theirs := strings.Split(askHTTP(t, real, "GET /metrics").Body, "\n")
	ours := askHTTP(t, here, "GET /metrics").Body
	differs := []string{ // by server, by size and by how far a log has grown
		"etcd_server_id{", "etcd_mvcc_db_total_size_", "etcd_server_proposals_",
	}
	compared := 0
	for line := range strings.Lines(ours) {
		line = strings.TrimSpace(line)
		if !strings.Contains(line, "etcd_") || slices.ContainsFunc(differs, func(d string) bool { return strings.HasPrefix(line, d) }) {
			continue
		}
		compared++
		assert.Contains(t, theirs, line, "etcd has no line")
	}
	assert.False(t, compared == 0 || !strings.Contains(ours, "\ngo_goroutines ") || !strings.Contains(ours, "\nprocess_open_fds "), "got\n%s", ours)
}

// TestHTTPDebugVars reads /debug/vars as etcd's own tests do.
func TestHTTPDebugVars(t *testing.T) {
	real, here := startReal(t), dialSocket(t, newServer(t, Config{})).Client
	want, got := askHTTP(t, real, "GET /debug/vars"), askHTTP(t, here, "GET /debug/vars")
	assert.Equal(t, want.Status, got.Status)
	assert.Equal(t, want.ContentType, got.ContentType)
}

// awaitVersion waits until an embedded etcd has raised the version of its cluster
// and storage to its own, which it does some time after it is ready.
func awaitVersion(t *testing.T, c *clientv3.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		answer := askHTTP(t, c, "GET /version").Body
		var said etcdversion.Versions
		require.NoError(t, json.Unmarshal([]byte(answer), &said))
		if said.Cluster == services.ClusterVersion() && said.Storage == services.StorageVersion {
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("still %s", answer)
		}
	}
}

type httpAnswer struct {
	Status                   int
	Body, ContentType, Allow string
}

// askHTTP makes a request on the unix socket that c is connected to.
func askHTTP(t *testing.T, c *clientv3.Client, request string) (a httpAnswer) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", strings.TrimPrefix(c.Endpoints()[0], "unix://"))
		},
	}}
	method, path, _ := strings.Cut(request, " ")
	r, err := http.NewRequestWithContext(t.Context(), method, "http://etcd"+path, nil)
	require.NoError(t, err)
	resp, err := client.Do(r)
	require.NoError(t, err, "%s", request)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	// The checks of /readyz come in the order of a map.
	lines := slices.Sorted(strings.Lines(string(body)))
	return httpAnswer{resp.StatusCode, strings.Join(lines, ""), resp.Header.Get("Content-Type"), resp.Header.Get("Allow")}
}

// TestCloseEndsConnections closes a server with connections that said nothing,
// half of HTTP/2's preface, half of a request of HTTP/1, and a whole one that
// they keep alive. goleak finds what is left.
func TestCloseEndsConnections(t *testing.T) {
	s := newServer(t, Config{})
	path := filepath.Join(shortDir(t), "client")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	var open []net.Conn
	for _, said := range []string{
		"", "PRI * HT", "GET /health HTTP/1.1\r\nHost: etcd\r\n\r\n", "GET /health HTTP/1.1\r\nHo",
	} {
		conn, err := net.Dial("unix", path)
		require.NoError(t, err)
		defer conn.Close()
		_, err = io.WriteString(conn, said)
		require.NoError(t, err)
		if strings.HasSuffix(said, "\r\n\r\n") {
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, resp.StatusCode)
		}
		open = append(open, conn)
	}
	began := time.Now()
	assert.NoError(t, s.Close())
	assert.NoError(t, <-served)
	assert.LessOrEqual(t, time.Since(began), 10*time.Second, "closing took")
	for i, conn := range open {
		_, err := io.Copy(io.Discard, conn)
		assert.False(t, err != nil && !errors.Is(err, syscall.ECONNRESET), "connection %d: %v", i, err)
	}
}

// TestIdleClientMayPing has a client with nothing but a watch ping as often as
// a kube-apiserver does.
func TestIdleClientMayPing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, Config{})
		c := dialWith(t, s, clientv3.Config{DialKeepAliveTime: 30 * time.Second, DialKeepAliveTimeout: 10 * time.Second})
		stream, err := pb.NewWatchClient(c.ActiveConnection()).Watch(t.Context())
		require.NoError(t, err)
		sendCreate(t, stream, &pb.WatchCreateRequest{Key: []byte("k")})
		resp := receive(t, stream)
		require.True(t, resp.Created, "got %v", resp)
		time.Sleep(time.Hour)
		put(t, s.Client(), "k", "v")
		resp = receive(t, stream)
		assert.Len(t, resp.Events, 1, "got %v", resp)
	})
}

// TestPingsWithoutStream has a client ping with no stream open, which etcd does
// not allow.
func TestPingsWithoutStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := rawHTTP2(t)
		for range 5 {
			time.Sleep(30 * time.Second)
			if _, err := conn.Write([]byte("\x00\x00\x08\x06\x00\x00\x00\x00\x00snowglob")); err != nil {
				break // it has been cut off
			}
		}
		said, err := io.ReadAll(conn)
		assert.False(t, err != nil || !strings.Contains(string(said), "too_many_pings"), "got %q, %v", said, err)
	})
}

// TestMuteClientIsCutOff has a client that answers no ping.
func TestMuteClientIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := rawHTTP2(t)
		began := time.Now()
		_, err := io.Copy(io.Discard, conn)
		assert.NoError(t, err)
		assert.Equal(t, 2*time.Hour, time.Since(began).Round(time.Minute), "cut off")
	})
}

// rawHTTP2 connects to a new server as far as HTTP/2's preface and settings.
func rawHTTP2(t *testing.T) net.Conn {
	t.Helper()
	s := newServer(t, Config{})
	l := bufconn.Listen(1 << 20)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	conn, err := l.Dial()
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = conn.Close()
		_ = s.Close()
		assert.NoError(t, <-served, "Serve")
	})
	_, err = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	require.NoError(t, err)
	return conn
}
