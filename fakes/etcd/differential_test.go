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

// compareWithReal does one sequence on an embedded etcd and through both doors
// of an in-memory one each.
func compareWithReal(t testing.TB, src differential.Source) {
	t.Helper()
	n, err := differential.Compare(context.Background(), src,
		&differential.System{Name: "embedded", Client: startReal(t)},
		&differential.System{Name: "in process", Client: newServer(t, Config{}).Client().Client},
		&differential.System{Name: "gRPC", Client: dial(t, newServer(t, Config{})).Client},
	)
	if err != nil {
		t.Fatalf("after %d operations: %v", n, err)
	}
}

func TestDifferential(t *testing.T) {
	for seed := range uint64(4) {
		compareWithReal(t, differential.FromSeed(seed, 500))
	}
}
