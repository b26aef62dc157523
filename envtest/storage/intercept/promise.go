package intercept

import (
	"context"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/internal/turn"
)

// promises are leases that Grant has promised, and that the store grants when a key is
// first put with them. Upstream calls Grant while it holds a mutex. Another goroutine that waits
// for the mutex keeps virtual time from moving, and an answer that takes virtual time would
// never come. So Grant answers at once.
type promises struct {
	mu   sync.Mutex
	byID map[clientv3.LeaseID]*promise
}

// promise is one lease. turn is a lock on the grant, made of a channel and not of a mutex, so
// that virtual time passes while somebody waits for it.
type promise struct {
	ttl     int64
	turn    turn.Lock
	granted clientv3.LeaseID // 0 before
}

// make promises a lease. Its ID is negative, which no store's is.
func (p *promises) make(ttl int64) *clientv3.LeaseGrantResponse {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byID == nil {
		p.byID = map[clientv3.LeaseID]*promise{}
	}
	id := clientv3.LeaseID(-1 - len(p.byID))
	p.byID[id] = &promise{ttl: ttl, turn: turn.New()}
	return &clientv3.LeaseGrantResponse{ID: id, TTL: ttl}
}

// keep returns the store's ID of a lease. If the lease was only promised, the store first has
// to grant it. A grant that fails is tried again for the next put.
func (d *decorator) keep(ctx context.Context, id clientv3.LeaseID) (clientv3.LeaseID, error) {
	d.promises.mu.Lock()
	promised := d.promises.byID[id]
	d.promises.mu.Unlock()
	if promised == nil {
		return id, nil
	}
	if promised.turn.Take(ctx) != nil {
		return 0, ctx.Err()
	}
	defer promised.turn.Give()
	if promised.granted != 0 {
		return promised.granted, nil
	}
	granted, err := d.grant(ctx, promised.ttl)
	if err != nil {
		return 0, err
	}
	promised.granted = granted.ID
	return granted.ID, nil
}

// grant asks the store for a lease.
func (d *decorator) grant(ctx context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error) {
	return call(ctx, d, subject{point: fault.StoreLeaseGrant}, func(ctx context.Context) (*clientv3.LeaseGrantResponse, error) {
		return d.conn.inner.Load().Grant(ctx, ttl)
	})
}
