package intercept

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// lease is the client's leases. An API server only ever asks for one, and lets it
// run out; of the rest nothing is known to rules.
type lease struct {
	clientv3.Lease
	*decorator
}

// Grant implements clientv3.Lease.
func (l *lease) Grant(ctx context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error) {
	return call(ctx, l.decorator, "store/lease-grant", "", func(ctx context.Context) (*clientv3.LeaseGrantResponse, error) {
		return l.Lease.Grant(ctx, ttl)
	})
}

// Revoke implements clientv3.Lease.
func (l *lease) Revoke(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error) {
	return send(ctx, l.conn, func() (*clientv3.LeaseRevokeResponse, error) { return l.Lease.Revoke(ctx, id) })
}

// TimeToLive implements clientv3.Lease.
func (l *lease) TimeToLive(ctx context.Context, id clientv3.LeaseID, opts ...clientv3.LeaseOption) (*clientv3.LeaseTimeToLiveResponse, error) {
	return send(ctx, l.conn, func() (*clientv3.LeaseTimeToLiveResponse, error) { return l.Lease.TimeToLive(ctx, id, opts...) })
}

// KeepAliveOnce implements clientv3.Lease.
func (l *lease) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	return send(ctx, l.conn, func() (*clientv3.LeaseKeepAliveResponse, error) { return l.Lease.KeepAliveOnce(ctx, id) })
}
