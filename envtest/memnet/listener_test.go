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
)

func TestListenerConnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Listen()
		if l.Addr().Network() != "memory" {
			t.Errorf("network %q, want memory", l.Addr().Network())
		}
		if _, _, err := net.SplitHostPort(l.Addr().String()); err != nil {
			t.Errorf("servers cannot split the address: %v", err)
		}
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
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(c, "hello")
		line, err := bufio.NewReader(c).ReadString('\n')
		if line != "hello\n" || err != nil {
			t.Errorf("echo %q, %v", line, err)
		}
		c.Close()
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("read after close: %v, want net.ErrClosed", err)
		}
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
		if err != nil {
			t.Fatal(err)
		}
		if err := <-accepted; err != nil {
			t.Fatal(err)
		}
		c.SetReadDeadline(time.Now().Add(time.Hour))
		start := time.Now()
		_, err = c.Read(make([]byte, 1))
		if !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != time.Hour {
			t.Errorf("read ended after %v with %v, want a deadline error after 1h", time.Since(start), err)
		}
		l.Close()
		if err := <-accepted; !errors.Is(err, net.ErrClosed) {
			t.Errorf("pending accept: %v, want net.ErrClosed", err)
		}
		if _, err := l.DialContext(t.Context()); !errors.Is(err, net.ErrClosed) {
			t.Errorf("dial after close: %v, want net.ErrClosed", err)
		}
		c.Close()
		if _, err := (<-server).Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("server read after the client closed: %v, want EOF", err)
		}
	})
}

func TestDialEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Listen() // nobody accepts
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := l.DialContext(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("dial that nobody accepts: %v, want deadline exceeded", err)
		}
		failed := make(chan error)
		go func() {
			_, err := l.DialContext(t.Context())
			failed <- err
		}()
		synctest.Wait()
		l.Close()
		if err := <-failed; !errors.Is(err, net.ErrClosed) {
			t.Errorf("pending dial: %v, want net.ErrClosed", err)
		}
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
			if err := <-served; err != http.ErrServerClosed {
				t.Errorf("serve: %v", err)
			}
		}()

		direct := &Transport{Handler: http.NotFoundHandler()}
		req, _ := http.NewRequestWithContext(t.Context(), "POST", "https://cluster/exec", nil)
		req.Header.Set("Connection", "keep-alive, Upgrade")
		req.Header.Set("Upgrade", "echo")
		if _, err := direct.RoundTrip(req); err == nil {
			t.Error("an upgrade without an upgrade transport passed")
		}
		direct.Upgrade = UpgradeTransport(l.DialNetwork, nil)
		resp, err := direct.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("status %s", resp.Status)
		}
		conn := resp.Body.(io.ReadWriter)
		fmt.Fprintln(conn, "over")
		line, err := bufio.NewReader(conn).ReadString('\n')
		if line != "over\n" || err != nil {
			t.Errorf("echo %q, %v", line, err)
		}
	})
}
