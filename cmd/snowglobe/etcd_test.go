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
	said, stdout := io.Pipe()
	var stderr strings.Builder
	ended := make(chan int, 1)
	go func() {
		ended <- execute(ctx, []string{"etcd", "--listen", "127.0.0.1:0"}, stdout, &stderr)
		_ = stdout.Close()
	}()
	lines := bufio.NewReader(said)
	endpoint := ""
	for endpoint == "" {
		line, err := lines.ReadString('\n')
		require.NoError(t, err, "it ended without printing its endpoint")
		_, endpoint, _ = strings.Cut(strings.TrimSpace(line), "ETCDCTL_ENDPOINTS=")
	}
	rest := make(chan string, 1)
	go func() {
		all, _ := io.ReadAll(lines)
		rest <- string(all)
	}()

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
	require.Equal(t, exitOK, <-ended)
	require.Contains(t, <-rest, "Ctrl-C")
	require.Equal(t, "snowglobe: stopped\n", stderr.String())
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
