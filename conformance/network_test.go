package conformance_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/conformance/suite"
)

// TestNetwork dials what is in a network, and what is only in the machine's.
func TestNetwork(t *testing.T) {
	var network suite.Network
	listeners := []net.Listener{network.At("host.example.com:443"), network.At("all.example.com"), network.At("/socket")}
	machine, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { assert.NoError(t, machine.Close()) }()
	for address, at := range map[string]net.Listener{
		"host.example.com:443": listeners[0], "all.example.com:1": listeners[1], "all.example.com:2": listeners[1], "/socket": listeners[2],
	} {
		accepted := make(chan error, 1)
		go func() {
			conn, err := at.Accept()
			if err == nil {
				err = conn.Close()
			}
			accepted <- err
		}()
		conn, err := network.Dial(t.Context(), "tcp", address)
		require.NoError(t, err, address)
		assert.NoError(t, <-accepted, address)
		assert.NoError(t, conn.Close(), address)
	}
	for _, address := range []string{"host.example.com:80", "other.example.com:443", machine.Addr().String(), "/other"} {
		_, err := network.Dial(t.Context(), "tcp", address)
		assert.ErrorContains(t, err, "no server is at "+address)
	}
}
