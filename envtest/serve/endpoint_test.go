package serve_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"snowglobe.test/envtest/serve"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answer is a handler that answers with a text.
func answer(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
}

// get sends a request and reads the whole answer.
func get(t *testing.T, by http.RoundTripper) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "https://localhost/", nil)
	require.NoError(t, err)
	response, err := by.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

// TestOpenAndClose refuses requests before the endpoint is open and after it is
// closed, and answers them in between.
func TestOpenAndClose(t *testing.T) {
	endpoint := listen(t, serve.Config{})
	_, err := endpoint.Connect()
	assert.ErrorIs(t, err, serve.ErrRefused)
	select {
	case <-endpoint.Opened():
		t.Error("an endpoint is open by itself")
	default:
	}

	endpoint.Open(answer("snow"))
	<-endpoint.Opened()
	conn, err := endpoint.Connect()
	require.NoError(t, err)
	for _, by := range []http.RoundTripper{conn, endpoint.Loopback()} {
		text, err := get(t, by)
		assert.NoError(t, err)
		assert.Equal(t, "snow", text)
	}

	endpoint.Close()
	assert.False(t, conn.Usable())
	_, err = get(t, conn)
	assert.ErrorIs(t, err, serve.ErrRefused)
	_, err = endpoint.Connect()
	assert.ErrorIs(t, err, serve.ErrRefused)
}

// TestEnter finds every request from inside the process handled between the two calls.
func TestEnter(t *testing.T) {
	var inside, handled atomic.Int32
	endpoint := listen(t, serve.Config{Enter: func() (leave func()) {
		inside.Add(1)
		return func() { inside.Add(-1) }
	}})
	endpoint.Open(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { handled.Store(inside.Load()) }))
	_, err := get(t, endpoint.Loopback())
	require.NoError(t, err)
	require.NoError(t, endpoint.Stop(t.Context())) // when the handler has returned
	assert.EqualValues(t, 1, handled.Load())
	assert.Zero(t, inside.Load())
}

// TestEndings has a request in flight when the way to the server ends: its client
// sees what a network would show, and the handler's context ends.
func TestEndings(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(*serve.Endpoint, *serve.Connection)
		want error
	}{
		"reset": {func(e *serve.Endpoint, _ *serve.Connection) { e.Reset() }, syscall.ECONNRESET},
		"cut":   {func(_ *serve.Endpoint, c *serve.Connection) { c.Break(serve.ErrTimeout) }, syscall.ETIMEDOUT},
		"stop":  {func(e *serve.Endpoint, _ *serve.Connection) { _ = e.Stop(context.Background()) }, io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			endpoint := listen(t, serve.Config{})
			arrived, left := make(chan struct{}), make(chan struct{})
			endpoint.Open(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
				close(arrived)
				<-req.Context().Done()
				close(left)
			}))
			conn, err := endpoint.Connect()
			require.NoError(t, err)
			failed := make(chan error, 1)
			go func() {
				_, err := get(t, conn)
				failed <- err
			}()
			<-arrived
			test.end(endpoint, conn)
			assert.ErrorIs(t, <-failed, test.want)
			<-left
			_, err = get(t, conn)
			assert.ErrorIs(t, err, serve.ErrRefused)
		})
	}
}

// TestResetBeforeOpen crashes a server that is about to accept requests.
func TestResetBeforeOpen(t *testing.T) {
	endpoint := listen(t, serve.Config{})
	endpoint.Reset()
	endpoint.Open(answer("snow"))
	_, err := endpoint.Connect()
	assert.ErrorIs(t, err, serve.ErrRefused)
}

// TestStopJoins stops while a handler runs that does not end: Stop says so when
// its context ends, and returns when the handler has.
func TestStopJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		endpoint, err := serve.Listen(serve.Config{})
		require.NoError(t, err)
		arrived, end := make(chan struct{}), make(chan struct{})
		endpoint.Open(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			close(arrived)
			<-end
		}))
		go func() { _, _ = get(t, endpoint.Loopback()) }()
		<-arrived
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(enough)
		assert.Error(t, endpoint.Stop(ctx))
		close(end)
		assert.NoError(t, endpoint.Stop(t.Context()))
	})
}

// TestPort listens at a port besides, whose connections end with the endpoint.
func TestPort(t *testing.T) {
	endpoint := listen(t, serve.Config{Address: "127.0.0.1:0"})
	require.True(t, endpoint.HasPort())
	conn, err := net.Dial("tcp", endpoint.Addr().String())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	accepted, err := endpoint.Listener().Accept()
	require.NoError(t, err)
	endpoint.Reset()
	_, err = conn.Read(make([]byte, 1))
	assert.ErrorIs(t, err, syscall.ECONNRESET)
	assert.NoError(t, accepted.Close(), "a connection may be closed twice")
	_, err = endpoint.Listener().Accept()
	assert.ErrorIs(t, err, net.ErrClosed)
}

func TestListenRefuses(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1":     "write it like 127.0.0.1:6443",
		"0.0.0.0:0":     "is not on loopback",
		"example.com:0": "is not on loopback",
		"127.0.0.1:1x":  "choose another port",
	} {
		_, err := serve.Listen(serve.Config{Address: address})
		assert.ErrorContains(t, err, want, "%s", address)
	}
}
