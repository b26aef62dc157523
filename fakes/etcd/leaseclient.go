package etcd

import (
	"context"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// leaseClient is the clientv3.Lease of an in-process client: upstream's, but
// for keeping leases alive, for which that one wants a stream and polls.
type leaseClient struct {
	clientv3.Lease
	c *client

	mu     sync.Mutex
	closed bool
	alive  map[*keepAlive]struct{}
}

func newLeaseClient(c *client, remote pb.LeaseClient) *leaseClient {
	return &leaseClient{
		Lease: clientv3.NewLeaseFromLeaseClient(remote, c.v3, 0),
		c:     c,
		alive: make(map[*keepAlive]struct{}),
	}
}

func (l *leaseClient) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	if err := l.c.usable(ctx); err != nil {
		return nil, clientv3.ContextError(ctx, err)
	}
	r, err := l.c.s.renewLease(int64(id))
	if err != nil {
		return nil, clientv3.ContextError(ctx, err)
	}
	resp := &clientv3.LeaseKeepAliveResponse{ResponseHeader: r.Header, ID: clientv3.LeaseID(r.ID), TTL: r.TTL}
	if r.TTL <= 0 {
		return resp, rpctypes.ErrLeaseNotFound
	}
	return resp, nil
}

// keepAlive is one KeepAlive call: a timer that renews, and the channel told.
type keepAlive struct {
	id     clientv3.LeaseID
	out    chan *clientv3.LeaseKeepAliveResponse
	timer  *time.Timer
	unhook func() bool
}

// KeepAlive renews the lease at once and then whenever a third of its
// time-to-live has passed, until ctx is done or the lease is gone. Like
// upstream it drops answers nobody reads.
func (l *leaseClient) KeepAlive(ctx context.Context, id clientv3.LeaseID) (<-chan *clientv3.LeaseKeepAliveResponse, error) {
	k := &keepAlive{id: id, out: make(chan *clientv3.LeaseKeepAliveResponse, clientv3.LeaseResponseChSize)}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.c.s
	s.mu.Lock()
	halted := l.closed || s.closed
	if !halted {
		s.work.Add(1)
	}
	s.mu.Unlock()
	if halted {
		close(k.out)
		return k.out, clientv3.ErrKeepAliveHalted{Reason: context.Canceled}
	}
	l.alive[k] = struct{}{}
	k.unhook = context.AfterFunc(ctx, func() {
		defer s.work.Done()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.end(k)
	})
	l.renew(k)
	return k.out, nil
}

// renew renews once and sees to the next time. l is locked.
func (l *leaseClient) renew(k *keepAlive) {
	r, err := l.c.s.renewLease(int64(k.id))
	if err != nil || r.TTL <= 0 {
		l.end(k)
		return
	}
	select {
	case k.out <- &clientv3.LeaseKeepAliveResponse{ResponseHeader: r.Header, ID: k.id, TTL: r.TTL}:
	default:
	}
	k.timer = l.c.s.after(seconds(r.TTL)/3, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if _, ok := l.alive[k]; ok {
			l.renew(k)
		}
	})
}

// end ends k, unless it has ended. l is locked.
func (l *leaseClient) end(k *keepAlive) {
	if _, ok := l.alive[k]; !ok {
		return
	}
	delete(l.alive, k)
	l.c.s.cancelTimer(k.timer)
	if k.unhook() {
		l.c.s.work.Done()
	}
	close(k.out)
}

// Close ends the client's keep-alives.
func (l *leaseClient) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for k := range l.alive {
		l.end(k)
	}
	return l.Lease.Close()
}
