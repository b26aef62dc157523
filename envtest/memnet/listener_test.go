package memnet

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestListenerConnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Listen()
		assert.Equal(t, "memory", l.Addr().Network(), "network")
		_, _, err := net.SplitHostPort(l.Addr().String())
		assert.NoError(t, err, "servers cannot split the address")
		go func() {
			c, err := l.Accept()
			if err != nil {
				t.Errorf("accept: %v", err)
				return
			}
			defer c.Close()
			io.Copy(c, c)
		}()
		c, err := l.DialContext(t.Context())
		require.NoError(t, err)
		fmt.Fprintln(c, "hello")
		line, err := bufio.NewReader(c).ReadString('\n')
		assert.Equal(t, "hello\n", line, "echo")
		assert.NoError(t, err, "echo")
		c.Close()
		_, err = c.Read(make([]byte, 1))
		assert.ErrorIs(t, err, net.ErrClosed, "read after close")
	})
}

// A virtual hour can only pass while every goroutine is durably blocked.
func TestListenerBlocksDurably(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Listen()
		accepted := make(chan error, 2)
		server := make(chan net.Conn, 1)
		go func() {
			c, err := l.Accept()
			server <- c
			accepted <- err
			_, err = l.Accept()
			accepted <- err
		}()
		time.Sleep(time.Hour)
		c, err := l.DialContext(t.Context())
		require.NoError(t, err)
		require.NoError(t, <-accepted)
		c.SetReadDeadline(time.Now().Add(time.Hour))
		start := time.Now()
		_, err = c.Read(make([]byte, 1))
		assert.False(t, !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != time.Hour, "read ended after %v with %v, want a deadline error after 1h", time.Since(start), err)
		l.Close()
		assert.ErrorIs(t, <-accepted, net.ErrClosed, "pending accept")
		_, err = l.DialContext(t.Context())
		assert.ErrorIs(t, err, net.ErrClosed, "dial after close")
		c.Close()
		_, err = (<-server).Read(make([]byte, 1))
		assert.True(t, err == io.EOF, "server read after the client closed: %v, want EOF", err)
	})
}

func TestDialEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Listen() // without an Accept
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := l.DialContext(ctx)
		assert.ErrorIs(t, err, context.DeadlineExceeded, "dial that is never accepted")
		failed := make(chan error)
		go func() {
			_, err := l.DialContext(t.Context())
			failed <- err
		}()
		synctest.Wait()
		l.Close()
		assert.ErrorIs(t, <-failed, net.ErrClosed, "pending dial")
	})
}

// An upgrade request goes through a listener to a real server; the two ends then
// own the connection.
func TestUpgrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Listen()
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c, rw, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Errorf("hijack: %v", err)
				return
			}
			defer c.Close()
			fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			rw.Flush()
			line, _ := rw.ReadString('\n')
			fmt.Fprintf(rw, "%s", line)
			rw.Flush()
		})}
		served := make(chan error, 1)
		go func() { served <- server.Serve(l) }()
		defer func() {
			server.Close()
			err := <-served
			assert.True(t, err == http.ErrServerClosed, "serve: %v", err)
		}()

		direct := &Transport{Handler: http.NotFoundHandler()}
		req, _ := http.NewRequestWithContext(t.Context(), "POST", "https://cluster/exec", nil)
		req.Header.Set("Connection", "keep-alive, Upgrade")
		req.Header.Set("Upgrade", "echo")
		_, err := direct.RoundTrip(req)
		assert.Error(t, err, "an upgrade without an upgrade transport passed")
		direct.Upgrade = UpgradeTransport(l.DialNetwork, nil)
		resp, err := direct.RoundTrip(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode, "status %s", resp.Status)
		conn := resp.Body.(io.ReadWriter)
		fmt.Fprintln(conn, "over")
		line, err := bufio.NewReader(conn).ReadString('\n')
		assert.Equal(t, "over\n", line, "echo")
		assert.NoError(t, err, "echo")
	})
}
