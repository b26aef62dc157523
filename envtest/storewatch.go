package envtest

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"snowglobe.test/envtest/trace"
	"snowglobe.test/internal/left"
)

// storeWatch puts every change of the store into a full trace, by revision.
type storeWatch struct {
	cancel context.CancelFunc
	ended  chan struct{}
}

// watchStore watches the started store, if the trace is full.
func (cp *ControlPlane) watchStore() error {
	if !cp.cfg.fullTrace {
		return nil
	}
	client, err := cp.store.Client()
	if err != nil {
		return fmt.Errorf("watch the store for the trace: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cp.changes = &storeWatch{cancel: cancel, ended: make(chan struct{})}
	watch := client.Watch(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithRev(1))
	go func() {
		defer close(cp.changes.ended)
		defer func() { _ = client.Close() }()
		for response := range watch {
			for _, event := range response.Events {
				cp.recorder.Record(trace.Write{
					Key: string(event.Kv.Key), Revision: event.Kv.ModRevision, Created: event.IsCreate(), Deleted: event.Type == clientv3.EventTypeDelete,
				})
			}
		}
	}()
	return nil
}

// stop ends the watch and joins it; nil was never started.
func (w *storeWatch) stop(ctx context.Context) error {
	if w == nil {
		return nil
	}
	w.cancel()
	return left.Await(ctx, w.ended, "the watch of the store for the trace has not ended",
		"snowglobe.test/envtest.(*ControlPlane).watchStore.")
}
