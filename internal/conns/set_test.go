package conns

import (
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSet(t *testing.T) {
	var set Set
	ours, theirs := net.Pipe()
	closed, itsPeer := net.Pipe()
	one, two := set.Add(ours), set.Add(closed)
	assert.NoError(t, two.Close())

	var prepared []net.Conn
	set.CloseAllAs(func(conn net.Conn) { prepared = append(prepared, conn) })
	assert.Equal(t, []net.Conn{ours}, prepared, "a closed connection has left the set")
	for _, peer := range []net.Conn{theirs, itsPeer} {
		_, err := peer.Read(make([]byte, 1))
		assert.ErrorIs(t, err, io.EOF)
	}
	assert.NoError(t, one.Close(), "closing twice")
	set.CloseAll()
	assert.Len(t, prepared, 1)
}
