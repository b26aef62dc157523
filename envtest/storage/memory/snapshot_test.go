package memory_test

import (
	"testing"

	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/storage/memory"
	"snowglobe.test/envtest/storage/storagetest"
)

func TestSnapshots(t *testing.T) { storagetest.RunSnapshots(t, memory.New("snapshots")) }

// TestFork shows that a fork starts from the snapshot and then goes its own way.
func TestFork(t *testing.T) {
	ctx := t.Context()
	parent := memory.New("parent")
	if _, err := parent.Snapshot(ctx); err == nil {
		t.Error("took a snapshot of a store that was not started")
	}
	if err := parent.Start(ctx); err != nil {
		t.Fatal(err)
	}
	value := func(store storage.Backend) string {
		t.Helper()
		client, err := store.Client()
		if err != nil {
			t.Fatal(err)
		}
		got, err := client.KV.Get(ctx, "key")
		if err != nil || len(got.Kvs) != 1 {
			t.Fatal(got, err)
		}
		return string(got.Kvs[0].Value)
	}
	write := func(store storage.Backend, value string) {
		t.Helper()
		client, err := store.Client()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.KV.Put(ctx, "key", value); err != nil {
			t.Fatal(err)
		}
	}
	write(parent, "shared")
	from, err := parent.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	write(parent, "parent")
	fork, err := parent.Fork("fork", from)
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if err := fork.Start(ctx); err != nil { // it outlives its parent
		t.Fatal(err)
	}
	if got := value(fork); got != "shared" {
		t.Errorf("the fork begins with %q", got)
	}
	write(fork, "fork")
	if got := value(fork); got != "fork" {
		t.Errorf("the fork has %q", got)
	}
	if err := fork.Stop(ctx); err != nil {
		t.Error(err)
	}
}
