package chain

import (
	"context"

	"snowglobe.test/envtest/storage"
)

// compactStore makes the store forget all revisions before its present one.
func (c *Chain) compactStore(ctx context.Context) error {
	_, err := storage.Compact(ctx, c.state.storage.Client())
	return err
}

// loseLeader returns what makes the store lose its leader, nil if it cannot.
func (c *Chain) loseLeader() func(context.Context) error {
	leaders, ok := c.cfg.Store.(storage.LeaderLoser)
	if !ok {
		return nil
	}
	return leaders.LoseLeader
}
