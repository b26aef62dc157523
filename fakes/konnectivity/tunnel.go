package konnectivity

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"snowglobe.test/fakes/stub"
	"snowglobe.test/internal/broadcast"
)

// Who closed a tunnel.
const (
	ByClient = "client"
	ByTarget = "target"
	ByProxy  = "proxy"
)

// Tunnel is the record of a dial and what came of it.
type Tunnel struct {
	Request  Request
	Asked    time.Time
	Opened   time.Time // zero if the target was not reached, or not yet
	Closed   time.Time // zero while the dial or the tunnel lasts
	Sent     int64     // bytes from the client to the target
	Received int64     // bytes from the target to the client
	ClosedBy string    // ByClient, ByTarget, ByProxy, "" while it lasts
	Err      error     // why, nil if the client or the target just closed it
}

// tunnel is a dial that is going on, or a tunnel. Its context ends with it.
type tunnel struct {
	proxy      *Proxy
	ctx        context.Context
	cancel     context.CancelCauseFunc
	target     net.Conn
	breakAfter int64

	record Tunnel // guarded by the proxy's lock
}

// Tunnels returns all tunnels so far, in the order of their requests.
func (p *Proxy) Tunnels() []Tunnel {
	p.mu.Lock()
	defer p.mu.Unlock()
	tunnels := make([]Tunnel, len(p.tunnels))
	for i, t := range p.tunnels {
		tunnels[i] = t.record
	}
	return tunnels
}

// AwaitTunnels returns the tunnels so far as soon as so many have been closed, failed
// dials included. If the context ends first, it returns what there is and the reason.
func (p *Proxy) AwaitTunnels(ctx context.Context, closed int) ([]Tunnel, error) {
	done := func(t Tunnel) bool { return t.ClosedBy != "" }
	return broadcast.AwaitRecords(ctx, &p.changed, p.Tunnels, done, closed, "tunnels have been closed")
}

// dial reaches the target of a request. The context is the client's.
func (p *Proxy) dial(ctx context.Context, request Request) (*tunnel, error) {
	t := &tunnel{proxy: p, record: Tunnel{Request: request, Asked: time.Now()}}
	t.ctx, t.cancel = context.WithCancelCause(ctx)
	p.mu.Lock()
	p.tunnels = append(p.tunnels, t)
	p.mu.Unlock()
	answer, err := p.Dials.Serve(t.ctx, request)
	if err == nil {
		t.breakAfter = answer.BreakAfter
		err = p.reach(t, answer)
	}
	if err != nil {
		t.close(ByProxy, err)
		return nil, err
	}
	p.mu.Lock()
	t.record.Opened = time.Now()
	p.mu.Unlock()
	context.AfterFunc(t.ctx, func() { _ = t.target.Close() }) // the target may have done so
	return t, nil
}

func (p *Proxy) reach(t *tunnel, answer Answer) error {
	p.mu.Lock()
	down := p.down
	p.mu.Unlock()
	if down != nil {
		return down
	}
	if answer.Dial == nil {
		return fmt.Errorf("the rule for %s has no Dial: set Answer.Dial", t.record.Request.Address)
	}
	var err error
	t.target, err = answer.Dial(t.ctx, "tcp", t.record.Request.Address)
	return err
}

// close records who closed the tunnel, the first time, and ends it.
func (t *tunnel) close(by string, err error) {
	if cause := context.Cause(t.ctx); cause != nil {
		by, err = ByProxy, cause
		if !errors.Is(err, errCut) && !errors.Is(err, stub.ErrStopped) {
			by = ByClient // whose context it is
		}
	}
	t.proxy.mu.Lock()
	if t.record.ClosedBy == "" {
		t.record.Closed, t.record.ClosedBy, t.record.Err = time.Now(), by, err
		t.proxy.changed.Tell()
	}
	t.proxy.mu.Unlock()
	t.cancel(err)
}

// failure is what has gone wrong at the target, if the target ended the tunnel.
func (t *tunnel) failure() error {
	t.proxy.mu.Lock()
	defer t.proxy.mu.Unlock()
	if t.record.ClosedBy != ByTarget {
		return nil
	}
	return t.record.Err
}

// pass counts bytes on their way and returns how many of them may go on, and an error
// if the tunnel is to be broken off then.
func (t *tunnel) pass(n int, count *int64) (int, error) {
	t.proxy.mu.Lock()
	defer t.proxy.mu.Unlock()
	var err error
	if left := t.breakAfter - t.record.Sent - t.record.Received; t.breakAfter > 0 && int64(n) >= left {
		n, err = int(left), stub.ErrBreak
	}
	*count += int64(n)
	return n, err
}

// send passes bytes of the client on.
func (t *tunnel) send(data []byte) error {
	n, broken := t.pass(len(data), &t.record.Sent)
	if _, err := t.target.Write(data[:n]); err != nil {
		t.close(ByTarget, err)
		return err
	}
	if broken != nil {
		t.close(ByProxy, broken)
	}
	return broken
}

// receive passes the bytes of the target to a function until there are no more, and
// says why. What the function fails with is the client's doing.
func (t *tunnel) receive(to func([]byte) error) error {
	return t.pump(t.target, ByTarget, func(data []byte) error {
		n, broken := t.pass(len(data), &t.record.Received)
		if n > 0 {
			if err := to(data[:n]); err != nil {
				t.close(ByClient, err)
				return err
			}
		}
		if broken != nil {
			t.close(ByProxy, broken)
		}
		return broken
	})
}

// pump passes what one end sends to a function, until the end closes the tunnel or the
// function fails.
func (t *tunnel) pump(from io.Reader, end string, to func([]byte) error) error {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if err := to(buffer[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			t.close(end, nil)
			return nil
		}
		if err != nil {
			t.close(end, err)
			return err
		}
	}
}
