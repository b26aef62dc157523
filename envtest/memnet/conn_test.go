package memnet

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pair returns both ends of a connection.
func pair(t *testing.T) (client, server net.Conn) {
	t.Helper()
	l := Listen()
	accepted := make(chan net.Conn)
	go func() {
		c, err := l.Accept()
		if err != nil {
			t.Errorf("accept: %v", err)
		}
		accepted <- c
	}()
	client, err := l.DialContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	server = <-accepted
	t.Cleanup(func() { client.Close(); server.Close(); l.Close() })
	return client, server
}

// Both directions carry more than they buffer, at once.
func TestConnCarriesBothWays(t *testing.T) {
	client, server := pair(t)
	payload := bytes.Repeat([]byte("0123456789abcdef!"), 40_000)
	want := sha256.Sum256(payload)
	var all sync.WaitGroup
	for _, end := range []net.Conn{client, server} {
		all.Go(func() {
			if n, err := end.Write(payload); n != len(payload) || err != nil {
				t.Errorf("write: %d, %v", n, err)
			}
		})
		all.Go(func() {
			got := make([]byte, len(payload))
			if _, err := io.ReadFull(end, got); err != nil || sha256.Sum256(got) != want {
				t.Errorf("read: %v, or other bytes", err)
			}
		})
	}
	all.Wait()
}

func TestConnBlocksWhenFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := pair(t)
		client.SetWriteDeadline(time.Now().Add(time.Minute))
		n, err := client.Write(make([]byte, 2*connBufferBytes))
		if n != connBufferBytes || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("wrote %d, %v; want %d and a deadline error", n, err, connBufferBytes)
		}
		var ne net.Error
		if !errors.As(err, &ne) || !ne.Timeout() {
			t.Errorf("%v is no timeout", err)
		}
		if n, err := io.ReadFull(server, make([]byte, connBufferBytes)); err != nil {
			t.Errorf("read %d, %v", n, err)
		}
		client.SetWriteDeadline(time.Time{})
		if _, err := client.Write([]byte("x")); err != nil {
			t.Errorf("write after the deadline was lifted: %v", err)
		}
	})
}

func TestConnClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := pair(t)
		ended := make(chan error, 2)
		go func() {
			_, err := client.Read(make([]byte, 1))
			ended <- err
		}()
		go func() {
			_, err := client.Write(make([]byte, 2*connBufferBytes))
			ended <- err
		}()
		synctest.Wait()
		client.Close()
		for range 2 {
			if err := <-ended; !errors.Is(err, net.ErrClosed) {
				t.Errorf("a call that was blocked: %v, want net.ErrClosed", err)
			}
		}
		// The other end can still read what was written, then gets EOF.
		got, err := io.ReadAll(server)
		if len(got) != connBufferBytes || err != nil {
			t.Errorf("the other end read %d bytes, %v", len(got), err)
		}
		if _, err := server.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("write to a closed end: %v, want io.ErrClosedPipe", err)
		}
	})
}

// Servers set a deadline in the past to interrupt a read, and then lift it. A
// lifted deadline must not fire later.
func TestLiftedDeadlineStaysLifted(t *testing.T) {
	for _, ahead := range []time.Duration{-time.Second, 0, time.Nanosecond} {
		synctest.Test(t, func(t *testing.T) {
			client, server := pair(t)
			client.SetDeadline(time.Now().Add(ahead))
			time.Sleep(ahead)
			client.SetDeadline(time.Time{})
			synctest.Wait()
			go func() {
				time.Sleep(time.Second)
				server.Write([]byte("x"))
			}()
			if _, err := client.Read(make([]byte, 1)); err != nil {
				t.Errorf("read after a deadline %v ahead was lifted: %v", ahead, err)
			}
		})
	}
}
