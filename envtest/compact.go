package envtest

import (
	"context"
	"fmt"

	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/trace"
)

// Compact makes the store discard all revisions before its current one, as a server
// does every five minutes with those of five minutes ago: a list or watch that
// continues from an older one ends with 410, reason Expired, unless a watch cache has
// what it needs.
func (cp *ControlPlane) Compact(ctx context.Context) error {
	client, err := cp.store.Client()
	if err != nil {
		return fmt.Errorf("compact the store: %w", err)
	}
	defer func() { _ = client.Close() }()
	revision, err := storage.Compact(ctx, client)
	if err != nil {
		return err
	}
	cp.recorder.Record(trace.Note{Text: fmt.Sprintf("the store is compacted at revision %d", revision)})
	return nil
}
