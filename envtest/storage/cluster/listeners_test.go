package cluster_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/storage/cluster"
	"snowglobe.test/internal/listeners"
)

// TestListeners looks for doors into the store. The ports of the relays are open to every
// user of the machine, who gets no answer there without a certificate.
func TestListeners(t *testing.T) {
	_, store := start(t, cluster.Config{})
	all, err := listeners.Of(os.Getpid())
	require.NoError(t, err)
	count := map[string]int{}
	for _, l := range all {
		count[l.Network]++
		if l.Network == listeners.TCP {
			assert.Error(t, askRaft(l.Address, nil), "in plain text")
			assert.Error(t, askRaft(l.Address, &tls.Config{InsecureSkipVerify: true}), "without a certificate")
			continue
		}
		open, err := l.OpenToOthers()
		require.NoError(t, err)
		assert.Empty(t, open)
	}
	members := len(store.Members())
	assert.Equal(t, map[string]int{listeners.TCP: members, listeners.Unix: 2 * members}, count)
}

// askRaft asks what a peer would, with TLS or without, and returns why there is no answer.
func askRaft(address string, secure *tls.Config) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if secure != nil {
		conn = tls.Client(conn, secure)
	}
	if _, err := fmt.Fprintf(conn, "POST /raft HTTP/1.1\r\nHost: %s\r\nContent-Length: 0\r\n\r\n", address); err != nil {
		return err
	}
	_, err = http.ReadResponse(bufio.NewReader(conn), nil)
	return err
}
