package cluster

import (
	"context"
	"io"
	"net"
	"sync"
)

// relay carries connections from a port of the loopback interface to the gate
// of a member's peer socket. Members find each other by a URL that must be known
// before the first of them starts and be the same after a restart. The relay
// holds its port from the start of the store to its stop, so nobody can take it
// in between; etcd can't be handed a listener and listens on the socket.
type relay struct {
	listener net.Listener
	to       *gate
	work     sync.WaitGroup
}

func listenRelay(to *gate) (*relay, error) {
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

// carry copies both ways until either end is closed, and then closes the other.
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

// close ends the relay and waits for what it started. The gate must be shut,
// for that breaks its connections.
func (r *relay) close() {
	_ = r.listener.Close()
	r.work.Wait()
}
