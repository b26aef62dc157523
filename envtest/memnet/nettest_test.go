package memnet

import (
	"net"
	"testing"

	"golang.org/x/net/nettest"
)

// TestConnConforms runs the standard suite for implementations of net.Conn.
func TestConnConforms(t *testing.T) {
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		client, server := newConns()
		return client, server, func() { client.Close(); server.Close() }, nil
	})
}
