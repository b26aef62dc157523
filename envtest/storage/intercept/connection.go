package intercept

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.etcd.io/etcd/client/v3/kubernetes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"snowglobe.test/envtest/fault/edge"
	"snowglobe.test/internal/conns"
	"snowglobe.test/internal/left"
)

// patience is how long an operation waits for a dead network: upstream's etcd
// clients ping an idle connection after 30 seconds, and give the answer ten.
const patience = 40 * time.Second

// ours is how the names of this package's functions begin in the stacks of goroutines, for
// errors that list the goroutines that are left.
const ours = "snowglobe.test/envtest/storage/intercept."

// ErrBroken is why an operation fails after Break.
var ErrBroken = errors.New("the connection to the store is gone")

// errUnreachable fails an operation that a dead network has swallowed.
var errUnreachable = status.Error(codes.Unavailable, "keepalive ping failed to receive ACK within timeout")

// errDial is why nothing can be dialed while the store is out of reach.
var errDial = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.EHOSTUNREACH}

// Connection is how one API server reaches its store: by the clients of Client and
// Direct, and by what Dialer dials. The rule "partition store" makes it wait;
// Break ends it for good, like the end of the process. Make it with NewConnection,
// and Attach a client before its own are used. Any goroutine may call its methods.
type Connection struct {
	injector      *edge.Injector
	promiseLeases bool
	writes        Writes
	inner         atomic.Pointer[kubernetes.Client] // nil before Attach
	stopTelling   func()                            // of partitions
	conns         conns.Set

	obstacle atomic.Pointer[obstacle] // nil as long as all is well
	underWay atomic.Int64             // operations
	idle     chan struct{}            // closed when the connection is broken and nothing is under way
	setIdle  func()

	// Goroutines that are the server's; see start.
	life   context.Context // ends with Close
	end    context.CancelFunc
	starts chan func()
	ended  chan struct{} // closed when none is left
}

// obstacle is why nothing can be sent: a partition, until it heals, or Break.
type obstacle struct {
	err   error
	ended chan struct{} // closed when a partition heals or the connection breaks; nil after Break
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
	c := &Connection{idle: make(chan struct{}), starts: make(chan func()), ended: make(chan struct{})}
	c.setIdle = sync.OnceFunc(func() { close(c.idle) })
	c.life, c.end = context.WithCancel(context.Background())
	return c
}

// PromiseLeases lets the clients promise a lease at once, and have it granted when a key
// is first put with it. It is for virtual time, and comes before Attach.
func (c *Connection) PromiseLeases() { c.promiseLeases = true }

// Attach gives the connection the client that it decorates and that Close closes.
// injector and writes may be nil. Call it once, in a goroutine of the server.
func (c *Connection) Attach(client *kubernetes.Client, injector *edge.Injector, writes Writes) {
	c.injector, c.writes = injector, writes
	c.inner.Store(client)
	go c.run()
	c.stopTelling = injector.OnPartition(c.setPartitioned)
}

// run starts what start asks for, until Close.
func (c *Connection) run() {
	defer close(c.ended)
	var started sync.WaitGroup
	defer started.Wait()
	for {
		select {
		case f := <-c.starts:
			started.Go(f)
		case <-c.life.Done():
			return
		}
	}
}

// start runs f in a goroutine that has the server's label (package process). A go
// statement would inherit the caller's label, and the caller may be a writer of
// another server. After Close start does nothing and returns false.
func (c *Connection) start(f func()) bool {
	select {
	case c.starts <- f:
		return true
	case <-c.life.Done():
		return false
	}
}

// setPartitioned is told when a partition begins and heals.
func (c *Connection) setPartitioned(partitioned bool) {
	if partitioned {
		c.obstacle.CompareAndSwap(nil, &obstacle{errUnreachable, make(chan struct{})})
		c.conns.CloseAll()
		return
	}
	if o := c.obstacle.Load(); o != nil && o.ended != nil && c.obstacle.CompareAndSwap(o, nil) {
		close(o.ended)
	}
}

// Break makes every operation fail at once with ErrBroken, and for good. When it
// returns nil nothing is under way any more, and nothing more is sent. When ctx ends
// first, the error says so; the connection is broken all the same.
func (c *Connection) Break(ctx context.Context) error {
	if o := c.obstacle.Swap(&obstacle{err: ErrBroken}); o != nil && o.ended != nil {
		close(o.ended)
	}
	if c.underWay.Load() == 0 {
		c.setIdle()
	}
	if inner := c.inner.Load(); inner != nil {
		_ = inner.Close() // breaks off what is under way
	}
	c.conns.CloseAll()
	return left.Await(ctx, c.idle, "break the connection to the store: an operation is still under way", ours)
}

// Close closes the client and joins all goroutines. Its clients are not used any more.
func (c *Connection) Close(ctx context.Context) error {
	inner := c.inner.Load()
	if inner == nil {
		return nil
	}
	c.stopTelling()
	_ = inner.Close()
	c.end()
	return left.Await(ctx, c.ended, "close the connection to the store: a watch has not ended", ours)
}

// Partitioned reports whether a rule keeps the server from its store now.
func (c *Connection) Partitioned() bool { return c.Err() == errUnreachable }

// Err says why nothing can be sent now, nil if it can.
func (c *Connection) Err() error {
	if o := c.obstacle.Load(); o != nil {
		return o.err
	}
	return nil
}

// Dialer returns a dialer whose connections a partition and Break end. While the
// store is out of reach, no member answers a dialer until its context ends, as on a
// network that is gone: a client that were refused would wait ever longer before it
// dials again, and notice late that the store is back, or that there is no server.
func (c *Connection) Dialer(dial func(ctx context.Context, network, address string) (net.Conn, error)) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if err := c.await(ctx, nil); err != nil {
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

// await waits while there is a partition, until ctx ends or patience is lost.
func (c *Connection) await(ctx context.Context, lost <-chan time.Time) error {
	for {
		o := c.obstacle.Load()
		switch {
		case o == nil:
			return nil
		case o.ended == nil:
			return o.err
		}
		select {
		case <-o.ended:
		case <-ctx.Done():
			return ctx.Err()
		case <-lost:
			return errUnreachable
		}
	}
}

// enter counts an operation as under way, unless it cannot be sent now. The count
// comes first: so Break sees each operation that does not see Break.
func (c *Connection) enter() bool {
	c.underWay.Add(1)
	if c.obstacle.Load() == nil {
		return true
	}
	_ = c.leave()
	return false
}

// leave ends an operation. It returns ErrBroken if the caller is not to hear the answer.
func (c *Connection) leave() error {
	left := c.underWay.Add(-1)
	if c.Err() != ErrBroken {
		return nil
	}
	if left == 0 {
		c.setIdle()
	}
	return ErrBroken
}

// enterLater is enter that waits until the operation can be sent.
func (c *Connection) enterLater(ctx context.Context) error {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for !c.enter() {
		if err := c.await(ctx, timer.C); err != nil {
			return err
		}
	}
	return nil
}

// send makes one call by the connection.
func send[T any](ctx context.Context, c *Connection, do func() (T, error)) (T, error) {
	var none T
	if !c.enter() {
		if err := c.enterLater(ctx); err != nil {
			return none, err
		}
	}
	answer, err := do()
	if broken := c.leave(); broken != nil {
		return none, broken
	}
	return answer, err
}
