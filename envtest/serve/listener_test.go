package serve

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLoopbacks listens at the first address of localhost that the machine has.
func TestLoopbacks(t *testing.T) {
	before := loopbacks
	t.Cleanup(func() { loopbacks = before })
	loopbacks = []string{"192.0.2.1", "127.0.0.1"}
	l, err := listen("localhost:0")
	require.NoError(t, err)
	assert.Equal(t, "127.0.0.1", l.addr.IP.String())
	l.stop()
	loopbacks = loopbacks[:1]
	_, err = listen("localhost:0")
	assert.ErrorContains(t, err, "this machine has no such address")
}
