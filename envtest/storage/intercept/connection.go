package intercept

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/internal/conns"
)

// patience is how long an operation waits for a dead network before it fails:
// upstream's etcd clients ping an idle connection after 30 seconds, and give the
// answer ten.
const patience = 40 * time.Second

// ErrBroken is why an operation fails after Break.
var ErrBroken = errors.New("the connection to the store is gone")

// errUnreachable is why an operation fails that a dead network has swallowed.
var errUnreachable = status.Error(codes.Unavailable, "keepalive ping failed to receive ACK within timeout")

// errDial is why nothing can be dialed while the store is out of reach.
var errDial = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.EHOSTUNREACH}

// Connection is how one API server reaches its store: by the clients that Client
// and Direct return, and by what is dialed with Dialer. The rule "partition store"
// makes all of it wait. Break ends it for good, as the end of the server's process
// would. Its methods may be called from any goroutine. Make it with NewConnection,
// and Attach the client that it decorates before its own are used.
type Connection struct {
	injector    *fault.Injector
	writes      Writes
	starter     starter // of goroutines that are the server's
	life        context.Context
	end         context.CancelFunc
	stopTelling func() // of partitions

	mu       sync.Mutex
	inner    *kubernetes.Client // nil before Attach
	cut      chan struct{}      // closed when the partition heals or the connection breaks; nil without a partition
	broken   chan struct{}      // closed by Break
	underWay int
	idle     chan struct{} // closed when nothing is under way; made by Break
	conns    conns.Set
}

// Writes is told of the writes that a server's requests make and that succeed.
type Writes interface {
	// Written is told of a put. expected is the revision that the key had, 0 if it
	// is new; revision is what it has now.
	Written(ctx context.Context, key string, expected, revision int64)
	// Deleted is told of a deletion, and of the revision that the key had.
	Deleted(key string, expected int64)
}

// NewConnection returns a connection that is whole, and has no client yet.
func NewConnection() *Connection {
	c := &Connection{broken: make(chan struct{}), starter: newStarter()}
	c.life, c.end = context.WithCancel(context.Background())
	return c
}

// Attach gives the connection the client that it decorates, and closes with it.
// injector may be nil, and nothing is ever injected then, and writes may be. It is
// called once, by a goroutine of the server.
func (c *Connection) Attach(client *kubernetes.Client, injector *fault.Injector, writes Writes) {
	c.injector, c.writes = injector, writes
	c.mu.Lock()
	c.inner = client
	c.mu.Unlock()
	go c.starter.run()
	c.stopTelling = injector.OnPartition(c.setPartitioned)
}

// setPartitioned is told when a partition begins and heals.
func (c *Connection) setPartitioned(partitioned bool) {
	c.mu.Lock()
	switch {
	case !partitioned:
		c.endCut()
	case c.cut == nil && !c.isBroken():
		c.cut = make(chan struct{})
	}
	c.mu.Unlock()
	if partitioned {
		c.conns.CloseAll()
	}
}

// endCut lets go what waits; mu is held.
func (c *Connection) endCut() {
	if c.cut != nil {
		close(c.cut)
		c.cut = nil
	}
}

// Break makes every operation fail at once with ErrBroken, and for good. When it
// returns nil nothing is under way any more, and nothing more is sent. When ctx ends
// first, the error says so; the connection is broken all the same.
func (c *Connection) Break(ctx context.Context) error {
	c.mu.Lock()
	if !c.isBroken() {
		close(c.broken)
		c.endCut()
		if c.idle = make(chan struct{}); c.underWay == 0 {
			close(c.idle)
		}
	}
	inner := c.inner
	c.mu.Unlock()
	if inner != nil {
		_ = inner.Close() // breaks off what is under way
	}
	c.conns.CloseAll()
	select {
	case <-c.idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("break the connection to the store: an operation is still under way: %w", context.Cause(ctx))
	}
}

// Close closes the client and returns when the connection has no goroutine left.
// Nobody uses its clients any more.
func (c *Connection) Close(ctx context.Context) error {
	c.mu.Lock()
	inner := c.inner
	c.mu.Unlock()
	if inner == nil {
		return nil
	}
	c.stopTelling()
	_ = inner.Close()
	c.end()
	if err := c.starter.close(ctx); err != nil {
		return fmt.Errorf("close the connection to the store: a watch has not ended: %w", err)
	}
	return nil
}

// Partitioned reports whether a rule keeps the server from its store now.
func (c *Connection) Partitioned() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut != nil
}

// Err says why nothing can be sent now, nil if it can.
func (c *Connection) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.isBroken():
		return ErrBroken
	case c.cut != nil:
		return errUnreachable
	}
	return nil
}

func (c *Connection) isBroken() bool {
	select {
	case <-c.broken:
		return true
	default:
		return false
	}
}

// Dialer returns a dialer whose connections a partition and Break end. While the
// store is out of reach, nobody answers a dialer until its context ends, as on a
// network that is gone: a client that were refused would wait ever longer before it
// dials again, and notice late that the store is back, or that there is no server.
func (c *Connection) Dialer(dial func(ctx context.Context, network, address string) (net.Conn, error)) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if _, err := c.await(ctx); err != nil {
			return nil, errDial
		}
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		member := c.conns.Add(conn)
		if c.Err() != nil { // since it was asked
			_ = member.Close()
			return nil, errDial
		}
		return member, nil
	}
}

// await waits while there is a partition, for as long as ctx allows. It reports
// whether it has waited.
func (c *Connection) await(ctx context.Context) (waited bool, err error) {
	for {
		c.mu.Lock()
		cut, broken := c.cut, c.isBroken()
		c.mu.Unlock()
		switch {
		case broken:
			return waited, ErrBroken
		case cut == nil:
			return waited, nil
		}
		waited = true
		select {
		case <-cut:
		case <-ctx.Done():
			return waited, context.Cause(ctx)
		}
	}
}

// enter waits until an operation can be sent, and counts it as under way. Its
// patience has an end.
func (c *Connection) enter(ctx context.Context) error {
	var lost <-chan time.Time
	for {
		c.mu.Lock()
		cut := c.cut
		switch {
		case c.isBroken():
			c.mu.Unlock()
			return ErrBroken
		case cut == nil:
			c.underWay++
			c.mu.Unlock()
			return nil
		}
		c.mu.Unlock()
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

// leave says that an operation is no longer under way, and whether its answer has
// come back.
func (c *Connection) leave(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.underWay--; c.underWay == 0 && c.idle != nil {
		close(c.idle)
	}
	if c.isBroken() {
		return ErrBroken
	}
	return err
}

// send makes one call by the connection.
func send[T any](ctx context.Context, c *Connection, do func() (T, error)) (T, error) {
	var none T
	if err := c.enter(ctx); err != nil {
		return none, err
	}
	answer, err := do()
	if err := c.leave(err); err != nil {
		return none, err
	}
	return answer, nil
}
