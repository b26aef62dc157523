package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/grpclog"
)

// TestEtcdServes talks to the command's etcd as etcdctl does, and then interrupts it.
func TestEtcdServes(t *testing.T) {
	terminal := redirectStderr(t)
	ctx, interrupt := context.WithCancelCause(t.Context())
	defer interrupt(nil)
	served := executeEtcd(ctx, t, "127.0.0.1:0")
	endpoint := served.endpoint

	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	require.NoError(t, err)
	_, err = client.Put(ctx, "flake", "falls")
	require.NoError(t, err)
	got, err := client.Get(ctx, "", clientv3.WithPrefix())
	require.NoError(t, err)
	require.Len(t, got.Kvs, 1)
	members, err := client.MemberList(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{endpoint}, members.Members[0].ClientURLs, "etcdctl --cluster asks here")
	require.NoError(t, client.Close())
	health, err := http.Get(endpoint + "/health")
	require.NoError(t, err)
	require.NoError(t, health.Body.Close())
	require.Equal(t, http.StatusOK, health.StatusCode)

	grpclog.Warning("a client died")
	grpclog.Error("something is wrong")
	logged, err := os.ReadFile(terminal)
	require.NoError(t, err)
	require.NotContains(t, string(logged), "a client died")
	require.Contains(t, string(logged), "something is wrong")

	interrupt(errInterrupted)
	require.Equal(t, exitOK, <-served.code)
	require.Contains(t, <-served.rest, "Ctrl-C")
	require.Equal(t, "snowglobe: stopped\n", served.stderr.String())
}

// TestEtcdServesOnASocket listens as upstream's integration tests have an etcd do.
func TestEtcdServesOnASocket(t *testing.T) {
	ctx, interrupt := context.WithCancelCause(t.Context())
	defer interrupt(nil)
	socket := "unix://" + filepath.Join(t.TempDir(), "etcd.sock")
	served := executeEtcd(ctx, t, socket)
	require.Equal(t, socket, served.endpoint)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{socket}, Logger: zap.NewNop()})
	require.NoError(t, err)
	_, err = client.Put(ctx, "flake", "falls")
	require.NoError(t, err)
	require.NoError(t, client.Close())
	interrupt(errInterrupted)
	require.Equal(t, exitOK, <-served.code)
	require.NoFileExists(t, strings.TrimPrefix(socket, "unix://"))
}

// servedEtcd is a command "etcd" that runs.
type servedEtcd struct {
	endpoint string          // as it is printed
	rest     chan string     // what is printed after that, when it has ended
	code     chan int        // the exit code
	stderr   strings.Builder // complete when it has ended
}

// executeEtcd runs the command until ctx ends, and returns when it serves.
func executeEtcd(ctx context.Context, t *testing.T, listen string, flags ...string) *servedEtcd {
	served := &servedEtcd{rest: make(chan string, 1), code: make(chan int, 1)}
	said, stdout := io.Pipe()
	go func() {
		served.code <- execute(ctx, append([]string{"etcd", "--listen", listen}, flags...), stdout, &served.stderr)
		_ = stdout.Close()
	}()
	lines := bufio.NewReader(said)
	for served.endpoint == "" {
		line, err := lines.ReadString('\n')
		require.NoError(t, err, "it ended without printing its endpoint")
		_, served.endpoint, _ = strings.Cut(strings.TrimSpace(line), "ETCDCTL_ENDPOINTS=")
	}
	go func() {
		all, _ := io.ReadAll(lines)
		served.rest <- string(all)
	}()
	return served
}

// redirectStderr has what the process writes to standard error in a file until
// the test ends.
func redirectStderr(t *testing.T) (path string) {
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	require.NoError(t, err)
	before := os.Stderr
	os.Stderr = file
	t.Cleanup(func() {
		os.Stderr = before
		require.NoError(t, file.Close())
	})
	return file.Name()
}
