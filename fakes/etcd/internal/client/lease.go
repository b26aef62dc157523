package client

import (
	"context"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"snowglobe.test/fakes/etcd/internal/keyspace"
)

// leaseClient is upstream's, but for keep-alives: upstream's need a stream and poll.
type leaseClient struct {
	clientv3.Lease
	c *client

	mu    sync.Mutex
	alive map[clientv3.LeaseID]*keepAlive // nil once the client is closed
}

func newLeaseClient(c *client, remote pb.LeaseClient) *leaseClient {
	return &leaseClient{
		Lease: clientv3.NewLeaseFromLeaseClient(remote, c.v3, 0),
		c:     c,
		alive: make(map[clientv3.LeaseID]*keepAlive),
	}
}

func (l *leaseClient) KeepAliveOnce(
	ctx context.Context, id clientv3.LeaseID,
) (*clientv3.LeaseKeepAliveResponse, error) {
	if err := l.c.usable(ctx); err != nil {
		return nil, clientv3.ContextError(ctx, err)
	}
	resp, err := l.renewOnce(id)
	return resp, clientv3.ContextError(ctx, err)
}

func (l *leaseClient) renewOnce(id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	r, err := l.c.store.RenewLease(int64(id))
	if err != nil {
		return nil, err
	}
	resp := &clientv3.LeaseKeepAliveResponse{ResponseHeader: r.Header, ID: id, TTL: r.TTL}
	if r.TTL <= 0 {
		return resp, rpctypes.ErrLeaseNotFound
	}
	return resp, nil
}

// keepAlive is a timer that renews a lease, and the calls that want its responses.
type keepAlive struct {
	id        clientv3.LeaseID
	timer     *time.Timer
	listeners []*listener
}

// listener is one KeepAlive call.
type listener struct {
	out    chan *clientv3.LeaseKeepAliveResponse
	unhook func()
}

// KeepAlive renews the lease at once and after each third of its
// time-to-live, until ctx is done or the lease is gone. Calls for one lease
// share the renewals. Like upstream's it drops responses that the caller does not read.
func (l *leaseClient) KeepAlive(
	ctx context.Context, id clientv3.LeaseID,
) (<-chan *clientv3.LeaseKeepAliveResponse, error) {
	li := &listener{out: make(chan *clientv3.LeaseKeepAliveResponse, clientv3.LeaseResponseChSize)}
	l.mu.Lock()
	defer l.mu.Unlock()
	k, joins := l.alive[id]
	if !joins {
		k = &keepAlive{id: id}
	}
	open := l.alive != nil
	if open {
		li.unhook, open = l.c.store.Hook(ctx, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.leave(k, li)
		})
	}
	if !open {
		close(li.out)
		return li.out, clientv3.ErrKeepAliveHalted{Reason: context.Canceled}
	}
	l.alive[id] = k
	k.listeners = append(k.listeners, li)
	if !joins {
		l.renew(k)
	}
	return li.out, nil
}

// renew renews once and schedules the next renewal. l is locked.
func (l *leaseClient) renew(k *keepAlive) {
	resp, err := l.renewOnce(k.id)
	if err != nil {
		l.end(k)
		return
	}
	for _, li := range k.listeners {
		select {
		case li.out <- resp:
		default:
		}
	}
	k.timer = l.c.store.After(keyspace.Seconds(resp.TTL)/3, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.alive[k.id] == k {
			l.renew(k)
		}
	})
}

// leave ends one call, and k with the last of them. l is locked.
func (l *leaseClient) leave(k *keepAlive, li *listener) {
	i := slices.Index(k.listeners, li)
	if i < 0 {
		return
	}
	k.listeners = slices.Delete(k.listeners, i, i+1)
	li.unhook()
	close(li.out)
	if len(k.listeners) == 0 {
		delete(l.alive, k.id)
		l.c.store.CancelTimer(k.timer)
	}
}

// end ends all calls of k. l is locked.
func (l *leaseClient) end(k *keepAlive) {
	for len(k.listeners) > 0 {
		l.leave(k, k.listeners[0])
	}
}

// Close ends the client's keep-alives.
func (l *leaseClient) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.alive {
		l.end(k)
	}
	l.alive = nil
	return l.Lease.Close()
}
