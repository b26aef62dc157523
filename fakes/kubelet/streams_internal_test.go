package kubelet

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/streaming/pkg/httpstream"
)

// fakeStream counts how often it is reset.
type fakeStream struct {
	httpstream.Stream
	resets int
}

func (s *fakeStream) Reset() error         { s.resets++; return nil }
func (s *fakeStream) Headers() http.Header { return nil }

// fakeConn forgets nothing by itself, as upstream's does with a stream that comes at
// the wrong moment.
type fakeConn struct {
	httpstream.Connection
	closed chan bool
}

func (c *fakeConn) Close() error                       { close(c.closed); return errors.New("the client was faster") }
func (c *fakeConn) CloseChan() <-chan bool             { return c.closed }
func (c *fakeConn) RemoveStreams(...httpstream.Stream) {}

// TestArrivals resets all streams in the end: those that were taken, those that wait
// and those that come too late.
func TestArrivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, conn := newArrivals(t.Context()), &fakeConn{closed: make(chan bool)}
		cancelled := false
		a.watch(conn, &taken{cancel: func(error) { cancelled = true }})
		replied := make(chan struct{})
		close(replied)
		var gone, used, waiting, late fakeStream
		for _, stream := range []*fakeStream{&gone, &used} {
			go func() { assert.NoError(t, a.accept(stream, replied)) }()
			next, err := a.next(0)
			assert.NoError(t, err)
			assert.Same(t, stream, next)
		}
		a.forget(conn, &gone)
		assert.Equal(t, []httpstream.Stream{&used}, a.all)

		refused := make(chan error, 1)
		go func() { refused <- a.accept(&waiting, replied) }()
		synctest.Wait()
		a.shut(conn)
		assert.Error(t, <-refused)
		assert.Error(t, a.accept(&late, replied), "upstream resets it then")
		assert.Equal(t, []int{1, 1, 1, 0}, []int{gone.resets, used.resets, waiting.resets, late.resets})
		assert.True(t, cancelled)
	})
}

// TestNoArrivals waits for a client that opens no streams, as long as upstream does.
func TestNoArrivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := newArrivals(t.Context()).next(30 * time.Second)
		assert.ErrorContains(t, err, "timed out waiting for client to create streams")
		assert.Equal(t, 30*time.Second, time.Since(began))
	})
}
