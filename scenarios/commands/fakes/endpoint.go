package fakes

import (
	"context"
	"fmt"
	"net"
	"path"
	"strings"
	"sync/atomic"
	"syscall"

	"snowglobe.test/envtest/memnet"
	"snowglobe.test/internal/conns"
	"snowglobe.test/scenarios/engine"
)

func (f *Fakes) Cut() engine.Command {
	return engine.Command{
		Name:    "cut",
		Args:    "HOST",
		Summary: "cut the API servers off from a fake",
		Details: `Their connections to it break, including tunnels through a proxy, and new ones are
refused until "heal HOST".`,
		Example:    "cut tunnel.example.com",
		NoNegation: true,
		Run:        func(_ context.Context, args []string) error { return f.cut(args[0], true) },
	}
}

func (f *Fakes) Heal() engine.Command {
	return engine.Command{
		Name:       "heal",
		Args:       "HOST",
		Summary:    "let the API servers reach a fake again",
		Details:    `It undoes "cut HOST".`,
		Example:    "heal tunnel.example.com",
		NoNegation: true,
		Run:        func(_ context.Context, args []string) error { return f.cut(args[0], false) },
	}
}

func (f *Fakes) cut(host string, closed bool) error {
	if _, err := f.fakeAt(host); err != nil {
		return err
	}
	found, _ := f.endpoints.Load(host)
	e := found.(*endpoint)
	switch before := e.closed.Swap(closed); {
	case closed && before:
		return fmt.Errorf("%w: %s is cut off already", engine.ErrUsage, host)
	case closed:
		e.open.CloseAll()
	case !before:
		return fmt.Errorf("%w: %s is not cut off", engine.ErrUsage, host)
	}
	return nil
}

// endpoint is where a fake is reached.
type endpoint struct {
	listener *memnet.Listener
	open     conns.Set
	closed   atomic.Bool // by the command "cut"
}

func (e *endpoint) dial(ctx context.Context) (net.Conn, error) {
	refused := &net.OpError{Op: "dial", Net: "memory", Err: syscall.ECONNREFUSED}
	if e.closed.Load() {
		return nil, refused
	}
	conn, err := e.listener.DialContext(ctx)
	if err != nil {
		return nil, err
	}
	conn = e.open.Add(conn)
	if e.closed.Load() { // cut may have closed all others before this one was added
		_ = conn.Close()
		return nil, refused
	}
	return conn, nil
}

// dialFake is the dialer of the script's API servers. The host is in the address, or the
// last part of a socket's path. In virtual time there is nothing but the fakes.
func (f *Fakes) dialFake(ctx context.Context, network, address string) (net.Conn, error) {
	host := strings.TrimPrefix(path.Base(address), "@")
	if network != "unix" {
		var err error
		if host, _, err = net.SplitHostPort(address); err != nil {
			return nil, err
		}
	}
	if found, ok := f.endpoints.Load(host); ok {
		return found.(*endpoint).dial(ctx)
	}
	if f.run.RealTime() {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}
