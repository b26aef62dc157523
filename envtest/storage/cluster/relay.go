package cluster

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"sync"
	"time"
)

// relay carries connections from a loopback port to a member's peer socket.
// Members find each other by a URL that is known before the first start and
// outlives restarts, and etcd can't be handed a listener. So the relay holds
// the port for as long as the store runs, and etcd listens on the socket.
//
// Any user of the machine can connect to a port, and whoever speaks to a member as
// a peer can write anything. So the relay terminates TLS, and admits the members only.
type relay struct {
	listener net.Listener
	secure   *tls.Config
	to       *socket
	closing  context.Context
	stop     context.CancelFunc
	work     sync.WaitGroup
}

// handshakeTimeout is how long whoever connects may take to show who it is.
const handshakeTimeout = 10 * time.Second

func listenRelay(to *socket, secure *tls.Config) (*relay, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &relay{listener: listener, secure: secure, to: to}
	r.closing, r.stop = context.WithCancel(context.Background())
	r.work.Go(r.accept)
	return r, nil
}

func (r *relay) address() string { return r.listener.Addr().String() }

func (r *relay) accept() {
	for {
		in, err := r.listener.Accept()
		if err != nil {
			return // closed
		}
		r.work.Go(func() { r.carry(in) })
	}
}

// carry copies both ways until one end is closed, and then closes the other.
func (r *relay) carry(raw net.Conn) {
	defer func() { _ = raw.Close() }()
	in := tls.Server(raw, r.secure)
	if r.handshake(in) != nil {
		return
	}
	out, err := r.to.dial(r.closing)
	if err != nil {
		return
	}
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(in, out)
		_ = raw.Close() // without TLS's close_notify, as when a process dies
	})
	_, _ = io.Copy(out, in)
	_ = out.Close()
	back.Wait()
}

func (r *relay) handshake(conn *tls.Conn) error {
	ctx, cancel := context.WithTimeout(r.closing, handshakeTimeout)
	defer cancel()
	return conn.HandshakeContext(ctx)
}

// close joins the goroutines. The socket must be closed first, to break connections.
func (r *relay) close() {
	r.stop()
	_ = r.listener.Close()
	r.work.Wait()
}
