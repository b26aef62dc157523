// Package server runs control planes for tests in other processes, which use
// envtest/client. A control plane that a test has done with is reset, and the next one
// that asks for the same gets it: that takes milliseconds, where a start takes a second.
package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/rpc"
	"net/rpc/jsonrpc"
	"sync"
	"time"

	"snowglobe.test/envtest/pool"
	"snowglobe.test/envtest/session"
)

// Config says how a server behaves.
type Config struct {
	// Linger is how long the server waits for the next test when the last has gone.
	// It ends then; 0 is forever.
	Linger time.Duration
	// Idle is how many control planes are kept that no test uses.
	Idle int
	// Log gets the logs of the API servers; nil for none.
	Log io.Writer
	// Told gets a line whenever a control plane begins or ends; nil for none.
	Told func(line string)
}

// Serve serves tests that connect to the listener, until the context ends or none has
// come for a while. It closes the listener; when it returns, all has stopped.
func Serve(ctx context.Context, listener net.Listener, cfg Config) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	connected, disconnect := context.WithCancel(context.WithoutCancel(ctx))
	tests := &tests{pool: &planes{idle: pool.Lot{Keep: cfg.Idle}, log: cfg.Log, told: cfg.Told}, linger: cfg.Linger}
	if cfg.Linger > 0 {
		tests.timer = time.AfterFunc(cfg.Linger, cancel)
	}
	closed := make(chan error, 1)
	context.AfterFunc(ctx, func() { closed <- listener.Close() })
	err := tests.accept(connected, listener)
	if ctx.Err() != nil {
		err = nil // it only says that the listener is closed
	}
	cancel()
	err = errors.Join(err, <-closed)
	// Only now that the listener is closed: so a client that loses its connection does not
	// connect to this server again, but finds another one, or none.
	disconnect()
	tests.running.Wait()
	return errors.Join(err, tests.pool.idle.Close(context.WithoutCancel(ctx)))
}

// tests counts the tests that are connected.
type tests struct {
	pool    *planes
	linger  time.Duration
	running sync.WaitGroup

	mu    sync.Mutex
	count int
	timer *time.Timer // nil for a server that waits forever
}

// accept serves all who come, until the listener is closed.
func (t *tests) accept(ctx context.Context, listener net.Listener) error {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return fmt.Errorf("accept: %w", err)
		}
		t.serve(ctx, conn)
	}
}

func (t *tests) serve(ctx context.Context, conn net.Conn) {
	t.add(1)
	t.running.Go(func() {
		defer t.add(-1)
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		defer stop()
		connected, disconnect := context.WithCancel(ctx)
		defer disconnect()
		cp := &controlPlane{ctx: connected, pool: t.pool}
		server := rpc.NewServer()
		if err := server.RegisterName(session.Service, cp); err != nil {
			panic(err) // of our own methods
		}
		server.ServeCodec(jsonrpc.NewServerCodec(&noticing{conn, disconnect}))
		if err := cp.giveBack(ctx); err != nil { // the test is gone already
			t.pool.tell("%s: %v", cp.test, err)
		}
	})
}

// noticing is a connection that calls ended when the client has gone. Before it returns, ServeCodec
// waits for the calls that it has begun; ended cancels them, since nobody wants their answers.
type noticing struct {
	net.Conn
	ended func()
}

// Read implements io.Reader.
func (n *noticing) Read(p []byte) (int, error) {
	read, err := n.Conn.Read(p)
	if err != nil {
		n.ended()
	}
	return read, err
}

// add counts tests that come and go. The last one that goes sets the timer.
func (t *tests) add(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count += n
	switch {
	case t.timer == nil:
	case t.count == 0:
		t.timer.Reset(t.linger)
	default:
		t.timer.Stop()
	}
}
