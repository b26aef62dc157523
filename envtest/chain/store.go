package chain

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/apiserver/pkg/server/egressselector"
	etcd3metrics "k8s.io/apiserver/pkg/storage/etcd3/metrics"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/process"
	"snowglobe.test/envtest/storage"
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
	return fmt.Errorf("store %s did not answer %d attempts: %w; is it running, and reachable from here?", c.cfg.Store,
		preflightAttempts, err)
}

// dialStoreTimeout is how long upstream's own clients of the store try to connect.
const dialStoreTimeout = 20 * time.Second

// dialStore dials the store before upstream's own clients do. If one of them could not connect
// in time, upstream would return an error but leave the client behind, which dials for ever.
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

// storeMonitor asks the chain's own client for the size of the chain's store. Upstream's
// monitor makes another client while it holds a mutex; the next request for /metrics waits for
// the mutex, and a goroutine that waits for a mutex keeps virtual time from moving. Stores of
// --etcd-servers-overrides are not asked.
type storeMonitor struct{ client *kubernetes.Client }

// Monitor implements etcd3metrics.Monitor.
func (m storeMonitor) Monitor(ctx context.Context) (etcd3metrics.StorageMetrics, error) {
	endpoint := "" // a store in memory has none
	if endpoints := m.client.Endpoints(); len(endpoints) > 0 {
		endpoint = endpoints[0]
	}
	status, err := m.client.Status(ctx, endpoint)
	if err != nil {
		return etcd3metrics.StorageMetrics{}, err
	}
	return etcd3metrics.StorageMetrics{Size: status.DbSize}, nil
}

// monitorStore makes /metrics report the size of the chain's store.
func (c *Chain) monitorStore() {
	if c.generic != nil && c.generic.monitor.client != nil {
		process.MonitorStorage(c.generic.monitor)
	}
}

// Close implements etcd3metrics.Monitor; the client is the chain's.
func (storeMonitor) Close() error { return nil }
