package konnectivity_test

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/fakes/konnectivity"
	"snowglobe.test/fakes/stub"
)

func TestTunnel(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		w.Route("10.0.0.7:*", w.echo())
		conn := w.open(t, "10.0.0.7:10250")
		exchange(t, conn, "hello")
		exchange(t, conn, strings.Repeat("0123456789abcdef", 1<<16))
		_ = conn.Close() // upstream's client may say that the tunnel is closed
		tunnel := w.closed(t, 1)
		assert.Equal(t, w.protocol, tunnel.Request.Protocol)
		assert.Equal(t, "10.0.0.7:10250", tunnel.Request.Address)
		assert.Equal(t, []int64{5 + 1<<20, 5 + 1<<20}, []int64{tunnel.Sent, tunnel.Received})
		assert.Equal(t, konnectivity.ByClient, tunnel.ClosedBy)
		assert.False(t, tunnel.Opened.IsZero())
		assert.Equal(t, "10.0.0.7:*", w.Dials.Calls()[0].Rule)
		if w.name == "HTTPConnect over TCP" {
			assert.Equal(t, "kube-apiserver", tunnel.Request.User)
			assert.Equal(t, []string{"system:masters"}, tunnel.Request.Groups)
		}
	})
}

func TestClosedByTarget(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		w.Route("*", w.target(func(conn net.Conn) {
			hello := make([]byte, 5)
			_, _ = io.ReadFull(conn, hello)
			_, _ = io.WriteString(conn, "bye")
		}))
		conn := w.open(t, "target:80")
		_, err := io.WriteString(conn, "hello")
		require.NoError(t, err)
		last, err := io.ReadAll(conn)
		assert.NoError(t, err)
		assert.Equal(t, "bye", string(last))
		tunnel := w.closed(t, 1)
		assert.Equal(t, konnectivity.ByTarget, tunnel.ClosedBy)
		assert.NoError(t, tunnel.Err)
		assert.Equal(t, []int64{5, 3}, []int64{tunnel.Sent, tunnel.Received})
		_ = conn.Close() // there is nothing left to close
	})
}

// TestDialFails is about all that can become of a dial but a tunnel.
func TestDialFails(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		w.Route("on-fire:80", func(context.Context, string, string) (net.Conn, error) { return nil, errFire })
		w.Route("empty:80", nil)
		w.Refuse("refused:*")
		w.Dials.Use(stub.Rule[konnectivity.Request, konnectivity.Answer]{
			Name: "forbidden", When: func(r konnectivity.Request) bool { return r.Address == "forbidden:80" },
			Answer: func(context.Context, konnectivity.Request) (konnectivity.Answer, error) {
				return konnectivity.Answer{}, stub.Status{Code: 403, Body: []byte("no")}
			},
		})
		w.Dials.Use(stub.Rule[konnectivity.Request, konnectivity.Answer]{
			Name: "broken", When: func(r konnectivity.Request) bool { return r.Address == "broken:80" },
			Answer: func(context.Context, konnectivity.Request) (konnectivity.Answer, error) {
				return konnectivity.Answer{}, stub.ErrBreak
			},
		})
		for i, c := range []struct{ address, connect, grpc, recorded string }{
			{"nowhere:80", "503 Service Unavailable", "no route leads to nowhere:80: add one with Proxy.Route", "no route leads to nowhere:80"},
			{"on-fire:80", "503 Service Unavailable", "the target is on fire", "the target is on fire"},
			{"empty:80", "503 Service Unavailable", "the rule for empty:80 has no Dial: set Answer.Dial", "no Dial"},
			{"refused:443", "503 Service Unavailable", "dial refused:443: connection refused", "connection refused"},
			{"forbidden:80", "403 Forbidden", "HTTP 403 Forbidden", "HTTP 403"},
			{"broken:80", "EOF", "tunnel closed", "broken off"},
		} {
			_, err := w.dial(t.Context(), "tcp", c.address)
			if w.protocol == konnectivity.GRPC {
				assert.ErrorContains(t, err, c.grpc)
			} else {
				assert.ErrorContains(t, err, c.connect)
			}
			tunnel := w.closed(t, i+1)
			assert.Equal(t, konnectivity.ByProxy, tunnel.ClosedBy)
			assert.ErrorContains(t, tunnel.Err, c.recorded)
			assert.Zero(t, tunnel.Opened)
		}
	})
}

// TestHang lets clients wait until they have had enough, and another until it is let
// through.
func TestHang(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		if w.patient {
			return
		}
		w.Route("*", w.echo())
		remove := w.Hang("hanging:80")
		gates := map[string]*stub.Gate{}
		for i, address := range []string{"hanging:80", "held:80"} {
			gates[address] = w.Dials.Hold(func(r konnectivity.Request) bool { return r.Address == address })
			ctx, cancel := context.WithCancel(t.Context())
			failed := make(chan error, 1)
			w.others.Go(func() {
				_, err := w.dial(ctx, "tcp", address)
				failed <- err
			})
			require.NoError(t, gates[address].Await(t.Context(), 1))
			if address == "hanging:80" {
				gates[address].Open()
			}
			cancel()
			assert.Error(t, <-failed)
			tunnel := w.closed(t, i+1)
			assert.Equal(t, konnectivity.ByClient, tunnel.ClosedBy)
			assert.ErrorIs(t, tunnel.Err, context.Canceled)
		}
		remove()
		gates["held:80"].Open()
		for _, address := range []string{"hanging:80", "held:80"} {
			conn := w.open(t, address)
			exchange(t, conn, "at last")
			_ = conn.Close() // upstream's client may say that the tunnel is closed
		}
	})
}

// TestBreakAfter breaks a tunnel off in the middle, in either direction.
func TestBreakAfter(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		for i, limit := range []int64{3, 8} {
			w.Dials.Reply(konnectivity.Answer{Dial: w.echo(), BreakAfter: limit}, nil)
			conn := w.open(t, "target:80")
			_, err := io.WriteString(conn, "hello")
			require.NoError(t, err)
			got, _ := io.ReadAll(conn)
			assert.Equal(t, map[int64]string{3: "", 8: "hel"}[limit], string(got))
			tunnel := w.closed(t, i+1)
			assert.Equal(t, konnectivity.ByProxy, tunnel.ClosedBy)
			assert.ErrorIs(t, tunnel.Err, stub.ErrBreak)
			assert.Equal(t, limit, tunnel.Sent+tunnel.Received)
			_ = conn.Close() // there is nothing left to close
		}
	})
}

func TestCut(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		w.Route("*", w.echo())
		one, two := w.open(t, "one:80"), w.open(t, "two:80")
		exchange(t, one, "hello")
		w.Cut()
		for _, conn := range []net.Conn{one, two} {
			_, _ = io.ReadAll(conn)
			_ = conn.Close()
		}
		tunnel := w.closed(t, 2)
		assert.Equal(t, konnectivity.ByProxy, tunnel.ClosedBy)
		assert.ErrorContains(t, tunnel.Err, "cut off")
		_, err := w.dial(t.Context(), "tcp", "one:80")
		assert.Error(t, err)
		assert.ErrorContains(t, w.closed(t, 3).Err, "cut off")

		w.Heal()
		conn := w.open(t, "one:80")
		exchange(t, conn, "hello again")
		_ = conn.Close() // upstream's client may say that the tunnel is closed
	})
}

// TestStop ends tunnels that are open, and dials that hang.
func TestStop(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		w.Route("*", w.echo())
		w.Hang("hanging:80")
		gate := w.Dials.Hold(func(r konnectivity.Request) bool { return r.Address == "hanging:80" })
		conn := w.open(t, "one:80")
		exchange(t, conn, "hello")
		w.others.Go(func() {
			_, err := w.dial(context.Background(), "tcp", "hanging:80")
			assert.Error(t, err)
		})
		require.NoError(t, gate.Await(t.Context(), 1))
		w.end(t)
		tunnel := w.closed(t, 2)
		assert.ErrorContains(t, tunnel.Err, "the fake has been stopped")
		assert.ErrorContains(t, w.Tunnels()[0].Err, "the fake has been stopped")
		assert.Equal(t, konnectivity.ByProxy, tunnel.ClosedBy)
		_, _ = io.ReadAll(conn)
		_ = conn.Close()
		if w.name != "GRPC over UDS" { // which upstream tries to reach for 30 seconds
			_, err := w.dial(t.Context(), "tcp", "one:80")
			assert.Error(t, err)
		}
	})
}
