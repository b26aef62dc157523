package inject

import (
	"context"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apiserver/pkg/server/egressselector"
)

// TestEgressClose closes a connection that the server has to somebody, and one that
// it dials later.
func TestEgressClose(t *testing.T) {
	var peers []net.Conn
	egress := NewEgress(nil)
	dial := egress.Dialer(egressselector.ControlPlane, func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		peers = append(peers, theirs)
		return ours, nil
	})
	_, err := dial(t.Context(), "tcp", "webhook:443")
	require.NoError(t, err)
	egress.Close()
	_, err = dial(t.Context(), "tcp", "webhook:443")
	assert.ErrorIs(t, err, net.ErrClosed)
	for _, peer := range peers {
		_, err := peer.Read(make([]byte, 1))
		assert.ErrorIs(t, err, io.EOF)
	}
}
