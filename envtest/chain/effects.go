package chain

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"snowglobe.test/envtest/storage"
)

// compactStore makes the store forget all revisions before its present one.
func (c *Chain) compactStore(ctx context.Context) error {
	now, err := c.rest.client.Client.Get(ctx, "compact", clientv3.WithCountOnly())
	if err != nil {
		return fmt.Errorf("ask for the revision of the store: %w", err)
	}
	_, err = c.rest.client.Client.Compact(ctx, now.Header.Revision)
	return err
}

// loseLeader returns how the store is made to lose its leader, nil if this kind
// of store cannot.
func (c *Chain) loseLeader() func(context.Context) error {
	leaders, ok := c.cfg.Store.(storage.LeaderLoser)
	if !ok {
		return nil
	}
	return leaders.LoseLeader
}
