package scenarios

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
)

var cutCommand = command{
	name:  "cut",
	args:  "HOST",
	least: 1, most: 1,
	summary: "cut the API servers off from a fake",
	details: `Their connections to it break, including tunnels through a proxy, and new ones are
refused until "heal HOST".`,
	example:    "cut tunnel.example.com",
	noNegation: true,
	run:        func(_ context.Context, s *session, args []string) error { return s.cut(args[0], true) },
}

var healCommand = command{
	name:  "heal",
	args:  "HOST",
	least: 1, most: 1,
	summary:    "let the API servers reach a fake again",
	details:    `It undoes "cut HOST".`,
	example:    "heal tunnel.example.com",
	noNegation: true,
	run:        func(_ context.Context, s *session, args []string) error { return s.cut(args[0], false) },
}

func (s *session) cut(host string, closed bool) error {
	if _, err := s.fakeAt(host); err != nil {
		return err
	}
	found, _ := s.doors.Load(host)
	d := found.(*door)
	switch before := d.closed.Swap(closed); {
	case closed && before:
		return fmt.Errorf("%w: %s is cut off already", errUsage, host)
	case closed:
		d.open.CloseAll()
	case !before:
		return fmt.Errorf("%w: %s is not cut off", errUsage, host)
	}
	return nil
}

// door is the way to a fake.
type door struct {
	listener *memnet.Listener
	open     conns.Set
	closed   atomic.Bool
}

func (d *door) dial(ctx context.Context) (net.Conn, error) {
	refused := &net.OpError{Op: "dial", Net: "memory", Err: syscall.ECONNREFUSED}
	if d.closed.Load() {
		return nil, refused
	}
	conn, err := d.listener.DialContext(ctx)
	if err != nil {
		return nil, err
	}
	conn = d.open.Add(conn)
	if d.closed.Load() {
		_ = conn.Close()
		return nil, refused
	}
	return conn, nil
}

// dialFake is the dialer of the script's API servers. The host is in the address, or the
// last part of a socket's path. In virtual time there is nothing but the fakes.
func (s *session) dialFake(ctx context.Context, network, address string) (net.Conn, error) {
	host := strings.TrimPrefix(path.Base(address), "@")
	if network != "unix" {
		var err error
		if host, _, err = net.SplitHostPort(address); err != nil {
			return nil, err
		}
	}
	if found, ok := s.doors.Load(host); ok {
		return found.(*door).dial(ctx)
	}
	if s.opts.RealTime {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}
