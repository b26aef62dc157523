package memnet

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// connBufferBytes is how much of one direction is held before the writer blocks.
const connBufferBytes = 64 << 10

// conn is one end of a connection: a pipe to read from and one to write to.
type conn struct {
	in, out *pipe
}

var _ net.Conn = (*conn)(nil)

func newConns() (client, server *conn) {
	up, down := newPipe(), newPipe()
	return &conn{in: down, out: up}, &conn{in: up, out: down}
}

// Read waits for bytes; io.EOF means that the other end has closed.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.in.read(p)
	return n, opError("read", err)
}

// Write blocks while the other end is a buffer behind.
func (c *conn) Write(p []byte) (int, error) {
	n, err := c.out.write(p)
	return n, opError("write", err)
}

// Close ends both directions. The other end can still read what was written.
func (c *conn) Close() error {
	c.in.closeReading()
	c.out.closeWriting()
	return nil
}

func (c *conn) LocalAddr() net.Addr  { return Addr{} }
func (c *conn) RemoteAddr() net.Addr { return Addr{} }

func (c *conn) SetDeadline(t time.Time) error {
	c.in.setReadDeadline(t)
	c.out.setWriteDeadline(t)
	return nil
}

func (c *conn) SetReadDeadline(t time.Time) error  { c.in.setReadDeadline(t); return nil }
func (c *conn) SetWriteDeadline(t time.Time) error { c.out.setWriteDeadline(t); return nil }

// opError gives an error the form that sockets give theirs.
func opError(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return &net.OpError{Op: op, Net: Addr{}.Network(), Addr: Addr{}, Err: err}
}

// pipe is one direction of a connection.
type pipe struct {
	mu       sync.Mutex
	readable sync.Cond // bytes came, or reading has ended
	writable sync.Cond // room came, or writing has ended
	ring     ring

	readClosed  bool // by the reader
	writeClosed bool // by the writer
	readBy      deadline
	writeBy     deadline
}

func newPipe() *pipe {
	p := &pipe{ring: ring{limit: connBufferBytes}}
	p.readable.L, p.writable.L = &p.mu, &p.mu
	return p
}

func (p *pipe) read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.readClosed:
			return 0, net.ErrClosed
		case p.readBy.passed:
			return 0, os.ErrDeadlineExceeded
		case len(b) == 0:
			return 0, nil
		case p.ring.n > 0:
			n := p.ring.read(b)
			p.writable.Signal()
			return n, nil
		case p.writeClosed:
			return 0, io.EOF
		}
		p.readable.Wait()
	}
}

func (p *pipe) write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	done := 0
	for {
		switch {
		case p.writeClosed:
			return done, net.ErrClosed
		case p.readClosed:
			return done, io.ErrClosedPipe
		case p.writeBy.passed:
			return done, os.ErrDeadlineExceeded
		}
		if n := p.ring.write(b[done:]); n > 0 {
			done += n
			p.readable.Signal()
		}
		if done == len(b) {
			return done, nil
		}
		p.writable.Wait()
	}
}

// closeReading also drops what its owner will not read.
func (p *pipe) closeReading() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.readClosed = true
	p.ring = ring{}
	p.readBy.lift()
	p.readable.Broadcast()
	p.writable.Broadcast()
}

func (p *pipe) closeWriting() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writeClosed = true
	p.writeBy.lift()
	p.readable.Broadcast()
	p.writable.Broadcast()
}

func (p *pipe) setReadDeadline(t time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.readClosed {
		p.readBy.set(t, &p.readable)
	}
}

func (p *pipe) setWriteDeadline(t time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.writeClosed {
		p.writeBy.set(t, &p.writable)
	}
}

// deadline is when a blocked call fails, guarded by the mutex of the Cond it wakes.
type deadline struct {
	passed bool
	timer  *time.Timer // of the current deadline; an older one that fires all the same is ignored
}

// set replaces the deadline; the zero time removes it.
func (d *deadline) set(t time.Time, wake *sync.Cond) {
	d.lift()
	if t.IsZero() {
		return
	}
	left := time.Until(t)
	if left <= 0 {
		d.passed = true
		wake.Broadcast()
		return
	}
	var mine *time.Timer
	mine = time.AfterFunc(left, func() {
		wake.L.Lock()
		defer wake.L.Unlock()
		if d.timer == mine {
			d.passed = true
			wake.Broadcast()
		}
	})
	d.timer = mine
}

func (d *deadline) lift() {
	d.passed = false
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}
