package client

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestReach fails when clientv3 no longer has the fields that reach.go uses.
func TestReach(t *testing.T) {
	defer func() {
		r := recover()
		require.True(t, r == nil, "clientv3 has changed: %v", r)
	}()
	boom := errors.New("boom")
	watch := failedWatch(boom)
	assert.ErrorIs(t, watch.Err(), boom, "the error of a failed watch")
	stream := failedStream(boom)
	assert.ErrorIs(t, stream.Err(), boom, "the error of a failed stream")
	c := clientv3.NewCtxClient(t.Context())
	setEndpoints(c, "a")
	c.SetEndpoints("b", "c")
	got := c.Endpoints()
	assert.False(t, len(got) != 2 || got[1] != "c", "endpoints are %v", got)
}
