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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pair returns both ends of a connection.
func pair(t *testing.T) (client, server net.Conn) {
	t.Helper()
	l := Listen()
	accepted := make(chan net.Conn)
	go func() {
		c, err := l.Accept()
		assert.NoError(t, err, "accept")
		accepted <- c
	}()
	client, err := l.DialContext(t.Context())
	require.NoError(t, err)
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
			n, err := end.Write(payload)
			assert.Equal(t, len(payload), n, "write")
			assert.NoError(t, err, "write")
		})
		all.Go(func() {
			got := make([]byte, len(payload))
			_, err := io.ReadFull(end, got)
			assert.False(t, err != nil || sha256.Sum256(got) != want, "read: %v, or other bytes", err)
		})
	}
	all.Wait()
}

func TestConnBlocksWhenFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := pair(t)
		client.SetWriteDeadline(time.Now().Add(time.Minute))
		n, err := client.Write(make([]byte, 2*connBufferBytes))
		assert.Equal(t, connBufferBytes, n, "wrote")
		assert.ErrorIs(t, err, os.ErrDeadlineExceeded, "wrote")
		var ne net.Error
		assert.False(t, !errors.As(err, &ne) || !ne.Timeout(), "%v is no timeout", err)
		n, err = io.ReadFull(server, make([]byte, connBufferBytes))
		assert.NoError(t, err, "read %d", n)
		client.SetWriteDeadline(time.Time{})
		_, err = client.Write([]byte("x"))
		assert.NoError(t, err, "write after the deadline was lifted")
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
			assert.ErrorIs(t, <-ended, net.ErrClosed, "a call that was blocked")
		}
		// The other end can still read what was written, then gets EOF.
		got, err := io.ReadAll(server)
		assert.Len(t, got, connBufferBytes, "the other end read")
		assert.NoError(t, err, "the other end read")
		_, err = server.Write([]byte("x"))
		assert.ErrorIs(t, err, io.ErrClosedPipe, "write to a closed end")
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
			_, err := client.Read(make([]byte, 1))
			assert.NoError(t, err, "read after a deadline %v ahead was lifted", ahead)
		})
	}
}
