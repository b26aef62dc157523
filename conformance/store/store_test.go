package store_test

import (
	"context"
	"flag"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/conformance/engine"
	"snowglobe.test/conformance/store"
	"snowglobe.test/envtest/storage/embedded"
	"snowglobe.test/fakes/etcd"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // they mostly wait
	os.Exit(m.Run())
}

// TestKept judges etcd, and ours.
func TestKept(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(t *testing.T) string{
		"etcd":      startEtcd,
		"snowglobe": func(t *testing.T) string { return serve(t, etcd.Config{}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, store.Config{Endpoints: []string{start(t)}})
			n := 1
			if testing.Short() && name == "etcd" {
				n = 4 // it is what ours is compared with, and slow
			}
			judgeKept(t, s, n)
		})
	}
}

// judgeKept asserts that a store keeps all promises, or one in n of them.
func judgeKept(t *testing.T, s *store.Store, n int) {
	t.Helper()
	for i, c := range store.Cases() {
		if i%n != 0 {
			continue
		}
		result := engine.Judge(t.Context(), s, c)
		assert.Equal(t, engine.Passed, result.State, "%s, at %s: %s", c.ID, result.Location, result.Message)
	}
}

// serve serves an in-memory etcd, and returns its URL.
func serve(t *testing.T, cfg etcd.Config) string {
	t.Helper()
	server, err := etcd.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, server.Close()) })
	listener, endpoint := listen(t)
	go func() { _ = server.Serve(listener) }()
	return endpoint
}

// listen listens on a socket, whose path is short.
func listen(t *testing.T) (net.Listener, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	require.NoError(t, err)
	return listener, "unix://" + path
}

func startEtcd(t *testing.T) string {
	t.Helper()
	backend := embedded.New(embedded.Config{})
	require.NoError(t, backend.Start(t.Context()))
	t.Cleanup(func() { assert.NoError(t, backend.Stop(context.Background())) })
	return backend.Endpoints().URLs[0]
}

// open opens a store, and closes it before what serves it.
func open(t *testing.T, cfg store.Config) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close(context.Background())) })
	return s
}

func TestCasesAreWellFormed(t *testing.T) {
	name := regexp.MustCompile(`^[a-z]+(-[a-z]+)?/[a-z0-9]+(-[a-z0-9]+)*$`)
	seen := map[string]bool{}
	failures := 0
	for _, c := range store.Cases() {
		assert.Regexp(t, name, c.ID)
		assert.False(t, seen[c.ID], "%s: two cases", c.ID)
		assert.Regexp(t, `\.$`, c.Promise, c.ID)
		assert.True(t, c.Source != "" && c.Test != nil, "%s: not complete: %+v", c.ID, c)
		seen[c.ID] = true
		if c.Failure {
			failures++
		}
	}
	assert.GreaterOrEqual(t, len(seen), 80, "cases")
	assert.GreaterOrEqual(t, failures, 20, "cases about what is refused or ends")
}
