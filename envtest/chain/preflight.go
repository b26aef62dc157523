package chain

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"k8s.io/apiserver/pkg/server/egressselector"

	"snowglobe.test/envtest/fault"
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
			return c.dialStore(ctx)
		}
	}
	return fmt.Errorf("store %s did not answer %d attempts: %w; is it running, and reachable from here?", c.cfg.Store, preflightAttempts, err)
}

// dialStoreTimeout is how long upstream's own clients of the store try to connect.
const dialStoreTimeout = 20 * time.Second

// dialStore dials the store as upstream's own clients do next: one that does not get
// through in time is an error, and upstream leaves it behind, trying on for ever.
func (c *Chain) dialStore(ctx context.Context) error {
	proxied := c.storeDialer.Proxied()
	if len(proxied) == 0 {
		return nil // no rule can be in the way
	}
	dial, err := c.generic.config.EgressSelector.Lookup(egressselector.Etcd.AsNetworkContext())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, dialStoreTimeout)
	defer cancel()
	for {
		for _, server := range proxied {
			var conn net.Conn
			switch conn, err = dial(ctx, "tcp", server); {
			case err == nil:
				return conn.Close()
			case errors.Is(err, fault.ErrCrashed):
				return err
			}
		}
		select {
		case <-time.After(preflightPause):
		case <-ctx.Done():
			return fmt.Errorf("dial the store: not within %s: %w", dialStoreTimeout, err)
		}
	}
}

func (c *Chain) askStore(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, preflightTimeout)
	defer cancel()
	_, err := c.state.storage.Client().KV.Get(ctx, "/registry/health")
	return err
}
