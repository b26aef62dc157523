package intercept

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
)

// Door is where those go through who make etcd clients of their own. Behind each
// connection to it is one to the same member, with which it comes and goes, and
// every call is passed on. Before those that a store point is about, the Edge is
// asked; watches and keep-alives pass unasked, since API servers make theirs
// through Client.
type Door struct {
	View View
	// Dial reaches the members.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// TLS is spoken to the members; nil is plain text, as is spoken to the door.
	TLS *tls.Config

	mu       sync.Mutex
	closing  bool
	closed   bool
	passages sync.WaitGroup
	open     map[*passage]struct{}
}

var errDoorClosed = errors.New("the API server has ended")

// DialContext connects to a member, through the door.
func (d *Door) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	p := newPassage(d)
	if err := p.connect(ctx, network, address); err != nil && !d.isClosing() {
		p.release()
		return nil, err
	}
	if !d.enter(p) {
		p.release()
		return nil, errDoorClosed
	}
	conn, err := p.listener.DialContext(ctx)
	if err != nil {
		p.end()
		return nil, err
	}
	return &passageConn{conn, p.end}, nil
}

// Closing is told that the API server stops. Upstream's clients try again for
// minutes when the store is gone, and some of upstream's shutdown waits for them;
// from now on they are told to give up.
func (d *Door) Closing() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closing = true
}

func (d *Door) isClosing() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closing
}

// Close breaks off every call and returns when all have ended.
func (d *Door) Close() {
	d.mu.Lock()
	d.closed = true
	open := slices.Collect(maps.Keys(d.open))
	d.mu.Unlock()
	for _, p := range open {
		p.end()
	}
	d.passages.Wait()
}

// enter lets a passage serve, unless the door is closed.
func (d *Door) enter(p *passage) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	if d.open == nil {
		d.open = map[*passage]struct{}{}
	}
	d.open[p] = struct{}{}
	d.passages.Go(func() {
		p.serve()
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.open, p)
	})
	return true
}
