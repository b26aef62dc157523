package egress

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// proxyConn is what a client takes for a connection to a proxy. It connects when the client
// has said to which host.
type proxyConn struct {
	ctx     context.Context
	cancel  context.CancelFunc
	connect func(ctx context.Context, target string) (conn net.Conn, proxied bool, err error)

	writing  sync.Mutex
	protocol proxyProtocol // nil before the first byte

	conn    atomic.Pointer[net.Conn]
	opened  chan struct{} // closed when conn or failure is known
	failed  error
	answers chan []byte   // in the place of the proxy
	answer  *bytes.Reader // the one that is being read; it belongs to the reader
}

// maxAnswers is more than a proxy has to say before a client's own connection begins.
const maxAnswers = 4

func newProxyConn(ctx context.Context, connect func(context.Context, string) (net.Conn, bool, error)) *proxyConn {
	p := &proxyConn{connect: connect, opened: make(chan struct{}), answers: make(chan []byte, maxAnswers), answer: bytes.NewReader(nil)}
	p.ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx)) // requests outlive the dialing
	return p
}

// Write implements net.Conn.
func (p *proxyConn) Write(b []byte) (int, error) {
	if conn := p.conn.Load(); conn != nil {
		return (*conn).Write(b)
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	if conn := p.conn.Load(); conn != nil { // by a write before
		return (*conn).Write(b)
	}
	if p.failed != nil || len(b) == 0 {
		return 0, p.failed
	}
	if p.failed = p.open(b); p.failed != nil {
		close(p.opened)
		return 0, p.failed
	}
	return len(b), nil
}

// open answers the client, and connects to the host that it asks for once it does.
func (p *proxyConn) open(said []byte) error {
	if p.protocol == nil {
		p.protocol = newProxyProtocol(said[0])
	}
	answer, target, err := p.protocol.hear(said)
	if err != nil {
		return err
	}
	if err := p.say(answer); err != nil || target == "" {
		return err
	}
	conn, proxied, err := p.connect(p.ctx, target)
	if err != nil {
		return err
	}
	cut := context.AfterFunc(p.ctx, func() { _ = conn.Close() })
	if answer, err = p.protocol.join(conn, proxied); err == nil {
		err = p.say(answer)
	}
	cut()
	if err != nil {
		_ = conn.Close()
		return err
	}
	p.conn.Store(&conn)
	if p.ctx.Err() != nil { // closed meanwhile
		_ = conn.Close()
	}
	close(p.opened)
	return nil
}

// say answers in the place of the proxy. A client that does not wait for answers is none.
func (p *proxyConn) say(answer []byte) error {
	if len(answer) == 0 {
		return nil
	}
	select {
	case p.answers <- answer:
		return nil
	default:
		return errors.New("a client of a proxy does not read its answers")
	}
}

// Read implements net.Conn.
func (p *proxyConn) Read(b []byte) (int, error) {
	for {
		if n, err := p.answer.Read(b); err == nil {
			return n, nil
		}
		select {
		case answer := <-p.answers:
			p.answer.Reset(answer)
			continue
		default:
		}
		if conn := p.conn.Load(); conn != nil && len(p.answers) == 0 {
			return (*conn).Read(b)
		}
		select {
		case answer := <-p.answers:
			p.answer.Reset(answer)
		case <-p.opened:
			if p.conn.Load() == nil {
				return 0, p.failed
			}
		case <-p.ctx.Done():
			return 0, net.ErrClosed
		}
	}
}

// Close implements net.Conn.
func (p *proxyConn) Close() error {
	p.cancel()
	if conn := p.conn.Load(); conn != nil {
		return (*conn).Close()
	}
	return nil
}

// LocalAddr implements net.Conn.
func (p *proxyConn) LocalAddr() net.Addr { return p.addr(net.Conn.LocalAddr) }

// RemoteAddr implements net.Conn.
func (p *proxyConn) RemoteAddr() net.Addr { return p.addr(net.Conn.RemoteAddr) }

func (p *proxyConn) addr(of func(net.Conn) net.Addr) net.Addr {
	if conn := p.conn.Load(); conn != nil {
		return of(*conn)
	}
	return &net.TCPAddr{}
}

// SetDeadline implements net.Conn. Before they are connected, clients set one only to give up.
func (p *proxyConn) SetDeadline(t time.Time) error {
	if p.conn.Load() == nil && !t.IsZero() && !t.After(time.Now()) {
		return p.Close()
	}
	return p.deadline(func(conn net.Conn) error { return conn.SetDeadline(t) })
}

// SetReadDeadline implements net.Conn.
func (p *proxyConn) SetReadDeadline(t time.Time) error {
	return p.deadline(func(conn net.Conn) error { return conn.SetReadDeadline(t) })
}

// SetWriteDeadline implements net.Conn.
func (p *proxyConn) SetWriteDeadline(t time.Time) error {
	return p.deadline(func(conn net.Conn) error { return conn.SetWriteDeadline(t) })
}

func (p *proxyConn) deadline(set func(net.Conn) error) error {
	if conn := p.conn.Load(); conn != nil {
		return set(*conn)
	}
	return nil
}
