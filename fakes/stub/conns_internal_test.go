package stub

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"snowglobe.test/envtest/memnet"
)

// TestRequestAfterStop is a stream of HTTP/2 whose goroutine has begun so late that
// Stop could not wait for it.
func TestRequestAfterStop(t *testing.T) {
	s := newServer(memnet.Listen(), "http", nil)
	s.stopping = true
	handler := s.count(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it runs") }))
	assert.PanicsWithError(t, http.ErrAbortHandler.Error(), func() { handler.ServeHTTP(nil, nil) })
}

// TestOver is what Stop goes by. That the end of a stream is reported before it is sent
// can't be provoked from outside.
func TestOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		for _, c := range []struct {
			conn          conn
			over, parting bool
		}{
			{conn{state: http.StateNew}, true, false},
			{conn{state: http.StateActive}, false, false},
			{conn{state: http.StateHijacked}, true, false},
			{conn{state: http.StateIdle, since: now}, true, false},
			{conn{state: http.StateIdle, since: now, http2: true}, false, true},
			{conn{state: http.StateIdle, since: now.Add(-goodbye), http2: true}, true, false},
		} {
			assert.Equal(t, c.over, c.conn.over(), "%+v", c.conn)
			assert.Equal(t, c.parting, c.conn.parting(), "%+v", c.conn)
		}
	})
}
