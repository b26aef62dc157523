package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"snowglobe.test/conformance/engine"
)

// TestConformanceStore judges the command's own etcd, and leaves nothing in it.
func TestConformanceStore(t *testing.T) {
	ctx, interrupt := context.WithCancelCause(t.Context())
	defer interrupt(nil)
	endpoint := executeEtcd(ctx, t, "unix://"+filepath.Join(t.TempDir(), "s")).endpoint
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	require.NoError(t, err)
	defer func() { assert.NoError(t, client.Close()) }()
	_, err = client.Put(ctx, "somebodys", "key")
	require.NoError(t, err)

	junit := filepath.Join(t.TempDir(), "junit.xml")
	var stdout, stderr bytes.Buffer
	args := []string{"conformance", "store", "--endpoints", endpoint, "--focus", "^(kv|paging)/", "--prefix", "/ours", "--keep-history", "--junit", junit, "-o", "json"}
	require.Equal(t, exitOK, execute(ctx, args, &stdout, &stderr), "%s", &stderr)
	assert.FileExists(t, junit)
	assert.Regexp(t, "^At "+endpoint+", keys are written below /ours/[a-z0-9]+/ only, and removed at the end. Its history is not compacted.\n$", stderr.String())
	var report engine.Report
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &report))
	assert.Positive(t, report.Count(engine.Passed))
	assert.Equal(t, 2, report.Count(engine.NotApplicable), "the cases that compact")
	got, err := client.Get(ctx, "", clientv3.WithPrefix())
	require.NoError(t, err)
	assert.Len(t, got.Kvs, 1, "what is left of it")
}

// TestConformanceStoreInterrupted has Ctrl-C come while keys are written.
func TestConformanceStoreInterrupted(t *testing.T) {
	endpoint := executeEtcd(t.Context(), t, "unix://"+filepath.Join(t.TempDir(), "s")).endpoint
	ctx, interrupt := context.WithCancelCause(t.Context())
	stdout := writerFunc(func(text []byte) (int, error) {
		if bytes.HasPrefix(text, []byte("ok  ")) {
			interrupt(errInterrupted)
		}
		return len(text), nil
	})
	var stderr bytes.Buffer
	assert.Equal(t, exitInterrupted, execute(ctx, []string{"conformance", "store", "--endpoints", endpoint}, stdout, &stderr), "%s", &stderr)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	require.NoError(t, err)
	defer func() { assert.NoError(t, client.Close()) }()
	got, err := client.Get(t.Context(), "", clientv3.WithPrefix())
	require.NoError(t, err)
	assert.Empty(t, got.Kvs, "what is left of it")
	assert.Greater(t, got.Header.Revision, int64(1), "keys were written")
}

type writerFunc func(text []byte) (int, error)

// Write implements io.Writer.
func (f writerFunc) Write(text []byte) (int, error) { return f(text) }

// TestBrokenStore judges a store that is too old.
func TestBrokenStore(t *testing.T) {
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	require.NoError(t, err)
	server := grpc.NewServer()
	pb.RegisterKVServer(server, oldStore{})
	pb.RegisterMaintenanceServer(server, oldStore{})
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	var stderr bytes.Buffer
	args := []string{"conformance", "store", "--endpoints", "unix://" + listener.Addr().String(), "--focus", "maintenance/version"}
	assert.Equal(t, exitBroken, execute(t.Context(), args, io.Discard, &stderr), "%s", &stderr)
	assert.Contains(t, stderr.String(), "1 of 1 cases failed: maintenance/version-supports-progress-requests")
}

// oldStore is an empty etcd of long ago.
type oldStore struct {
	pb.UnimplementedKVServer
	pb.UnimplementedMaintenanceServer
}

// Range implements pb.KVServer.
func (oldStore) Range(context.Context, *pb.RangeRequest) (*pb.RangeResponse, error) {
	return &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: 1}}, nil
}

// Status implements pb.MaintenanceServer.
func (oldStore) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	return &pb.StatusResponse{Version: "3.4.3"}, nil
}
