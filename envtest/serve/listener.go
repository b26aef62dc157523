package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"

	"snowglobe.test/envtest/memnet"
	"snowglobe.test/internal/conns"
)

// listener accepts connections in memory and, if it has a port, on loopback. A
// stopping server must close the open ones, as the end of its process would.
type listener struct {
	addr   *net.TCPAddr
	memory *memnet.Listener
	tcp    net.Listener // nil without a port

	accepted chan net.Conn
	done     chan struct{}
	once     sync.Once
	pumps    sync.WaitGroup
	conns    conns.Set
}

// memoryAddr is what a server advertises that has no port.
var memoryAddr = net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6443}

// listen opens a listener in memory and, unless the address is empty, at a port.
func listen(address string) (*listener, error) {
	addr := memoryAddr
	l := &listener{
		addr: &addr, memory: memnet.Listen(),
		accepted: make(chan net.Conn), done: make(chan struct{}),
	}
	if address != "" {
		if err := l.listenTCP(address); err != nil {
			l.stop()
			return nil, err
		}
		l.pumps.Go(func() { l.pump(l.tcp) })
	}
	l.pumps.Go(func() { l.pump(l.memory) })
	return l, nil
}

func (l *listener) listenTCP(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("listener address %q: %w; write it like 127.0.0.1:6443", address, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("listener address %q is not on loopback; use 127.0.0.1", address)
	}
	hosts := []string{host}
	if host == "localhost" {
		hosts = loopbacks
	}
	for _, host := range hosts {
		if l.tcp, err = net.Listen("tcp", net.JoinHostPort(host, port)); !isAbsent(err) {
			break
		}
	}
	switch {
	case isAbsent(err):
		return fmt.Errorf("listener: %w: this machine has no such address; use localhost:%s", err, port)
	case err != nil:
		return fmt.Errorf("listener: %w; choose another port, or 0 for a free one", err)
	}
	l.addr = l.tcp.Addr().(*net.TCPAddr)
	return nil
}

// loopbacks are the addresses of localhost, whatever the machine's resolver says. Some machines have
// only the second.
var loopbacks = []string{"127.0.0.1", "::1"}

// isAbsent reports whether the machine lacks an address.
func isAbsent(err error) bool {
	return errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT)
}

// pump hands the connections of one listener to Accept.
func (l *listener) pump(from net.Listener) {
	for {
		conn, err := from.Accept()
		if err != nil {
			return
		}
		select {
		case l.accepted <- conn:
		case <-l.done:
			_ = conn.Close()
			return
		}
	}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.accepted:
		return l.conns.Add(conn), nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. Connections that are open stay open.
func (l *listener) Close() error {
	l.once.Do(func() {
		close(l.done)
		_ = l.memory.Close()
		if l.tcp != nil {
			_ = l.tcp.Close()
		}
	})
	return nil
}

// Addr implements net.Listener; it is a *net.TCPAddr, as upstream insists.
func (l *listener) Addr() net.Addr { return l.addr }

// dial connects to the in-memory listener, whatever the address.
func (l *listener) dial(ctx context.Context) (net.Conn, error) {
	return l.memory.DialContext(ctx)
}

// reset closes everything as a process's sudden end would: TCP peers see a reset.
func (l *listener) reset() {
	_ = l.Close()
	l.conns.CloseAllAs(func(conn net.Conn) {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
	})
}

// stop closes everything and joins the pumps.
func (l *listener) stop() {
	_ = l.Close()
	l.conns.CloseAll()
	l.pumps.Wait()
}
