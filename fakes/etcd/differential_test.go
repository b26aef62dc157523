package etcd

import (
	"context"
	"os"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"snowglobe.test/fakes/etcd/internal/differential"
	"snowglobe.test/fakes/etcd/internal/realetcd"
)

// shortDir returns a folder with a path short enough for sockets.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "e")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// startReal starts an embedded etcd that stops when the test ends.
func startReal(t testing.TB) *clientv3.Client {
	t.Helper()
	real, err := realetcd.Start(shortDir(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(real.Close)
	c, err := real.Client()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newSession returns a session that compares an embedded etcd with two
// in-memory ones, one used in process and one over gRPC.
func newSession(t testing.TB) *differential.Session {
	t.Helper()
	return differential.NewSession(
		&differential.System{Name: "embedded", Client: startReal(t)},
		&differential.System{Name: "in process", Client: newServer(t, Config{}).Client().Client},
		&differential.System{Name: "gRPC", Client: dial(t, newServer(t, Config{})).Client},
	)
}

func TestDifferential(t *testing.T) {
	session := newSession(t)
	for seed := range uint64(5) {
		if n, err := session.Compare(context.Background(), differential.FromSeed(seed, 400)); err != nil {
			t.Fatalf("seed %d, after %d operations: %v", seed, n, err)
		}
	}
}

// bytesSource reads its choices from data.
type bytesSource struct{ data []byte }

// Choose implements differential.Source.
func (b *bytesSource) Choose(n int) int {
	if len(b.data) == 0 {
		return 0
	}
	c := int(b.data[0])
	b.data = b.data[1:]
	return c % n
}

// Done implements differential.Source.
func (b *bytesSource) Done() bool { return len(b.data) == 0 }

func FuzzDifferential(f *testing.F) {
	session := newSession(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if n, err := session.Compare(t.Context(), &bytesSource{data}); err != nil {
			t.Fatalf("after %d operations: %v", n, err)
		}
	})
}
