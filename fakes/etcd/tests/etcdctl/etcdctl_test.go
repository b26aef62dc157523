package etcdctl

import (
	"flag"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/etcdctl/v3/ctlv3"

	"snowglobe.test/fakes/etcd"
	"snowglobe.test/fakes/etcd/internal/realetcd"
)

var update = flag.Bool("update", false, "write what the embedded etcd has etcdctl print")

// runEtcdctl is the variable that makes the test binary etcdctl.
const runEtcdctl = "SNOWGLOBE_RUN_ETCDCTL"

func TestMain(m *testing.M) {
	if os.Getenv(runEtcdctl) != "" {
		ctlv3.MustStart()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestSessions runs etcdctl against an embedded etcd and the in-memory one.
func TestSessions(t *testing.T) {
	files, err := filepath.Glob("testdata/*.session")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".session"), func(t *testing.T) {
			t.Parallel() // one waits for a lease to run out
			steps := parse(t, file)
			t.Run("embedded", func(t *testing.T) { converse(t, embedded(t), file, steps, *update) })
			t.Run("memory", func(t *testing.T) { converse(t, memory(t), file, steps, false) })
		})
	}
}

// converse runs a session and compares the output with it, or writes it.
func converse(t *testing.T, endpoint, file string, steps []step, update bool) {
	s := &session{endpoint: endpoint, dir: t.TempDir(), names: map[string]string{}}
	for i := range steps {
		got := s.run(t, steps[i])
		if update {
			steps[i].want = got
			continue
		}
		require.Equal(t, steps[i].want, got, "etcdctl printed something else after: %s", steps[i].line)
	}
	if update {
		write(t, file, steps)
	}
}

// embedded starts a real etcd.
func embedded(t *testing.T) (endpoint string) {
	dir, err := os.MkdirTemp("", "e") // short enough for sockets
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	real, err := realetcd.Start(dir)
	require.NoError(t, err)
	t.Cleanup(real.Close)
	c, err := real.Client()
	require.NoError(t, err)
	return c.Endpoints()[0]
}

// memory starts an in-memory etcd.
func memory(t *testing.T) (endpoint string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	endpoint = "http://" + listener.Addr().String()
	s, err := etcd.New(etcd.Config{Endpoint: endpoint})
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.NoError(t, <-served)
	})
	return endpoint
}
