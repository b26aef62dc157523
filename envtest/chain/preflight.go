package chain

import (
	"context"
	"fmt"
	"time"
)

// The preflight asks the store this often before it gives up.
const (
	preflightAttempts = 5
	preflightTimeout  = 2 * time.Second
	preflightPause    = time.Second
)

// preflight asks the store before any server is built, with retries as upstream's
// had: an unreachable store is one clear error, not a server that is never ready.
func (c *Chain) preflight(ctx context.Context) error {
	var err error
	for attempt := range preflightAttempts {
		if attempt > 0 {
			select {
			case <-time.After(preflightPause):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if err = c.askStore(ctx); err == nil {
			return nil
		}
	}
	return fmt.Errorf("store %s did not answer %d attempts: %w; is it running, and reachable from here?", c.cfg.Store, preflightAttempts, err)
}

func (c *Chain) askStore(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, preflightTimeout)
	defer cancel()
	_, err := c.state.storage.Client().KV.Get(ctx, "/registry/health")
	return err
}
