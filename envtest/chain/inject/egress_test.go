package inject

import (
	"context"
	"io"
	"net"
	"runtime"
	"testing"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/server/egressselector"
)

// TestEgressClose closes a connection that the server has to a peer, and one that
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

// TestEgressForgets keeps a dialer, as client-go's transport cache does, which must not
// keep what its user's dialer is of.
func TestEgressForgets(t *testing.T) {
	egress := NewEgress(nil)
	dial, gone := func() (utilnet.DialFunc, weak.Pointer[[1 << 10]byte]) {
		owner := &[1 << 10]byte{}
		return egress.Dialer(egressselector.ControlPlane, func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.AddrError{Addr: string(owner[:])}
		}), weak.Make(owner)
	}()
	runtime.GC()
	require.NotNil(t, gone.Value(), "a dialer in use keeps its owner")
	egress.Close()
	runtime.GC()
	assert.Nil(t, gone.Value())
	runtime.KeepAlive(dial)
}
