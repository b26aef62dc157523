package storage

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"snowglobe.test/internal/conns"
)

// patience is how long an operation waits for a dead network before it fails:
// upstream's etcd clients ping an idle connection after 30 seconds, and give the
// answer ten.
const patience = 40 * time.Second

// ErrBroken is why an operation fails whose Link is broken.
var ErrBroken = errors.New("the connection to the store is gone")

// errUnreachable is why an operation fails that a dead network has swallowed.
var errUnreachable = status.Error(codes.Unavailable, "keepalive ping failed to receive ACK within timeout")

// errDial is why nothing can be dialed through a Link that is not whole.
var errDial = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.EHOSTUNREACH}

// Link is the way from one API server to its store. It can be cut and healed, as
// a network can: operations then wait until it heals, or they lose patience. And
// it can be broken for good, as by the end of the server's process. A nil Link is
// always whole. Make one with NewLink.
type Link struct {
	mu       sync.Mutex
	cut      chan struct{} // closed when it heals or breaks; nil while it is whole
	broken   chan struct{} // closed when it breaks
	underWay int
	idle     chan struct{} // closed when nothing is under way; made by Break
	clients  []*clientv3.Client
	conns    conns.Set
}

// NewLink returns a whole link.
func NewLink() *Link {
	return &Link{broken: make(chan struct{})}
}

// Cut swallows all that is sent, until Heal. Watches hear nothing, and go on
// where they were.
func (l *Link) Cut() {
	l.mu.Lock()
	if l.cut == nil && !l.isBroken() {
		l.cut = make(chan struct{})
	}
	l.mu.Unlock()
	l.conns.CloseAll()
}

// Heal makes the link whole again.
func (l *Link) Heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut != nil {
		close(l.cut)
		l.cut = nil
	}
}

// Break makes every operation fail at once, and for good. When it returns nothing
// is under way any more, and nothing more is sent.
func (l *Link) Break() {
	l.mu.Lock()
	if l.isBroken() {
		l.mu.Unlock()
		return
	}
	close(l.broken)
	if l.cut != nil {
		close(l.cut)
		l.cut = nil
	}
	clients, idle := l.clients, make(chan struct{})
	if l.idle = idle; l.underWay == 0 {
		close(idle)
	}
	l.mu.Unlock()
	for _, client := range clients {
		_ = client.Close() // breaks off what is under way
	}
	l.conns.CloseAll()
	<-idle
}

// IsCut says whether the link is cut.
func (l *Link) IsCut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cut != nil
}

// Err says why nothing can be sent now, nil if it can.
func (l *Link) Err() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.isBroken():
		return ErrBroken
	case l.cut != nil:
		return errUnreachable
	}
	return nil
}

func (l *Link) isBroken() bool {
	select {
	case <-l.broken:
		return true
	default:
		return false
	}
}

// Join puts all that a client does on the link. The client is not to be used
// before.
func (l *Link) Join(client *kubernetes.Client) {
	if l == nil {
		return
	}
	l.mu.Lock()
	l.clients = append(l.clients, client.Client)
	l.mu.Unlock()
	client.KV = linkedKV{client.KV, l}
	client.Lease = linkedLease{client.Lease, l}
	client.Watcher = linkedWatcher{client.Watcher, l}
	client.Kubernetes = linkedKubernetes{client.Kubernetes, l}
}

// Dialer returns a dialer whose connections go by the link. While it is cut, nobody
// answers a dialer until its context ends, as on a network that is gone: a client
// that were refused would wait ever longer before it dials again, and notice late
// that the link is whole, or broken.
func (l *Link) Dialer(dial Dialer) Dialer {
	if l == nil {
		return dial
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if l.pass(ctx) != nil {
			return nil, errDial
		}
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		linked := l.conns.Add(conn)
		if l.Err() != nil { // since it was asked
			_ = linked.Close()
			return nil, errDial
		}
		return linked, nil
	}
}

// enter waits until something can be sent, and counts it as under way.
func (l *Link) enter(ctx context.Context) error {
	var lost <-chan time.Time
	for {
		l.mu.Lock()
		cut := l.cut
		switch {
		case l.isBroken():
			l.mu.Unlock()
			return ErrBroken
		case cut == nil:
			l.underWay++
			l.mu.Unlock()
			return nil
		}
		l.mu.Unlock()
		if lost == nil {
			timer := time.NewTimer(patience)
			defer timer.Stop()
			lost = timer.C
		}
		select {
		case <-cut:
		case <-ctx.Done():
			return clientv3.ContextError(ctx, ctx.Err())
		case <-lost:
			return errUnreachable
		}
	}
}

// leave says that something is no longer under way, and whether its answer has
// come back.
func (l *Link) leave(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.underWay--; l.underWay == 0 && l.idle != nil {
		close(l.idle)
	}
	if l.isBroken() {
		return ErrBroken
	}
	return err
}

// over makes one call by the link.
func over[T any](ctx context.Context, l *Link, do func() (T, error)) (T, error) {
	var none T
	if err := l.enter(ctx); err != nil {
		return none, err
	}
	answer, err := do()
	if err := l.leave(err); err != nil {
		return none, err
	}
	return answer, nil
}
