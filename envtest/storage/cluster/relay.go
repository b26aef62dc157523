package cluster

import (
	"context"
	"io"
	"net"
	"sync"
)

// relay carries connections from a loopback port to a member's peer socket.
// Members find each other by a URL that is known before the first start and
// outlives restarts, and etcd can't be handed a listener. So the relay holds
// the port for as long as the store runs, and etcd listens on the socket.
type relay struct {
	listener net.Listener
	to       *socket
	work     sync.WaitGroup
}

func listenRelay(to *socket) (*relay, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &relay{listener: listener, to: to}
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
func (r *relay) carry(in net.Conn) {
	defer func() { _ = in.Close() }()
	out, err := r.to.dial(context.Background())
	if err != nil {
		return
	}
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(in, out)
		_ = in.Close()
	})
	_, _ = io.Copy(out, in)
	_ = out.Close()
	back.Wait()
}

// close joins the goroutines. The socket must be closed first, to break connections.
func (r *relay) close() {
	_ = r.listener.Close()
	r.work.Wait()
}
