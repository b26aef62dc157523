package intercept

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// lease is the client's leases. An API server only ever asks for one: it lets
// them run out.
type lease struct {
	clientv3.Lease
	View
}

// Grant implements clientv3.Lease.
func (l *lease) Grant(ctx context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error) {
	return call(ctx, &l.View, "store/lease-grant", "", func(ctx context.Context) (*clientv3.LeaseGrantResponse, error) {
		return l.Lease.Grant(ctx, ttl)
	})
}
