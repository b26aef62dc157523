package kine

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"

	"github.com/k3s-io/kine/pkg/app"
	"github.com/k3s-io/kine/pkg/endpoint"
	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/version"

	"snowglobe.test/envtest/storage/embedded"
	"snowglobe.test/fakes/etcd"
)

// judgedStore is a store that the page has a column for.
type judgedStore struct {
	name  string
	about func(t *testing.T) string
	start func(t *testing.T) (endpoint string)
}

var stores = []judgedStore{
	{"etcd", func(*testing.T) string { return "etcd " + version.Version + ", one member" }, startEtcd},
	{"snowglobe", func(*testing.T) string { return "`snowglobe etcd`, in memory, of this revision" }, startMemory},
	{"kine", func(t *testing.T) string {
		return "kine " + kineRelease(t) + " with sqlite, as it is configured by default but for its own compaction, which is off (`--compact-interval 0 --compact-min-retain 0`), so that those asked for can be judged"
	}, startKine},
}

func startEtcd(t *testing.T) string {
	t.Helper()
	backend := embedded.New(embedded.Config{})
	require.NoError(t, backend.Start(t.Context()))
	t.Cleanup(func() { assert.NoError(t, backend.Stop(context.Background())) })
	return backend.Endpoints().URLs[0]
}

func startMemory(t *testing.T) string {
	t.Helper()
	server, err := etcd.New(etcd.Config{})
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "s")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	require.NoError(t, err)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { assert.NoError(t, server.Close()) })
	return "unix://" + path
}

// sqliteOptions are kine's own, of the database that it makes if it is told none.
const sqliteOptions = "?_journal_mode=WAL&_busy_timeout=30000&_synchronous=NORMAL&_txlock=immediate&_stmt_cache_size=20&cache=shared"

func startKine(t *testing.T) string {
	t.Helper()
	logrus.SetLevel(logrus.FatalLevel)
	folder := t.TempDir()
	ctx, stop := context.WithCancel(context.Background())
	serving := &sync.WaitGroup{}
	t.Cleanup(func() {
		stop()
		serving.Wait()
	})
	config := app.Config(nil)
	config.WaitGroup = serving
	config.Listener = "unix://" + filepath.Join(folder, "s")
	config.Endpoint = "sqlite://" + filepath.Join(folder, "db") + sqliteOptions
	config.CompactInterval, config.CompactMinRetain = 0, 0
	served, err := endpoint.Listen(ctx, config)
	require.NoError(t, err)
	return served.Endpoints[0]
}

var required = regexp.MustCompile(`github.com/k3s-io/kine (v\S+)`)

func kineRelease(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("go.mod")
	require.NoError(t, err)
	found := required.FindSubmatch(text)
	require.NotNil(t, found, "go.mod requires kine")
	return string(found[1])
}
