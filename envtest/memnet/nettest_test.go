package memnet

import (
	"net"
	"testing"

	"golang.org/x/net/nettest"
)

// The suite that every net.Conn is held to.
func TestConnConforms(t *testing.T) {
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		client, server := newConns()
		return client, server, func() { client.Close(); server.Close() }, nil
	})
}
