package kubelet_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/memnet"
	"snowglobe.test/fakes/kubelet"
)

// TestStopLeavesNothing stops a kubelet in the middle of everything. Its clients are
// bare connections, so that the bubble, in which no time passes once its test is over,
// ends only if nothing of the kubelet is left.
func TestStopLeavesNothing(t *testing.T) {
	const (
		overSPDY      = "Upgrade: SPDY/3.1\r\nConnection: Upgrade\r\n"
		overWebSocket = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nOrigin: https://node\r\n"
	)
	for name, headers := range map[string]string{
		"GET /containerLogs/default/web/app?follow=true":       "",
		"POST /exec/default/web/app?output=1":                  overSPDY + "X-Stream-Protocol-Version: v4.channel.k8s.io\r\n",
		"GET /exec/default/web/app?output=1&input=1":           overWebSocket + "Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n",
		"GET /attach/default/web/app?output=1&tty=1":           overWebSocket + "Sec-WebSocket-Protocol: v4.channel.k8s.io\r\n",
		"POST /portForward/default/web":                        overSPDY + "X-Stream-Protocol-Version: portforward.k8s.io\r\n",
		"GET /portForward/default/web":                         overWebSocket + "Sec-WebSocket-Protocol: SPDY/3.1+portforward.k8s.io\r\n",
		"GET /portForward/default/web?port=80":                 overWebSocket + "Sec-WebSocket-Protocol: v4.channel.k8s.io\r\n",
		"GET /exec/default/web/app?output=1&held=1":            overWebSocket,
		"POST /exec/default/web/app?output=1&command=upgraded": "",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, memnet.Listen(), kubelet.Config{}, nil)
				wait := func(ctx context.Context, _ *kubelet.Process) (int, error) {
					<-ctx.Done()
					return 0, context.Cause(ctx)
				}
				w.app.Exec, w.app.Attach = wait, wait
				w.app.Log.Print("begun")
				w.pod.Ports = map[int]func(context.Context, net.Conn) error{80: func(_ context.Context, conn net.Conn) error {
					_, err := io.Copy(io.Discard, conn)
					return err
				}}
				w.Requests.Hold(func(r kubelet.Request) bool { return r.Query.Get("held") != "" })

				conn, err := w.transport.DialContext(t.Context(), "tcp", "node")
				require.NoError(t, err)
				secure := w.transport.TLSClientConfig.Clone()
				secure.ServerName = "localhost"
				client := tls.Client(conn, secure)
				fmt.Fprintf(client, "%s HTTP/1.1\r\nHost: node\r\n%s\r\n", name, headers)
				synctest.Wait()
				w.end()

				_, _ = io.Copy(io.Discard, client) // returns when the connection has ended
				assert.NoError(t, conn.Close())
			})
		})
	}
}

// TestStopAnswers lets a client see the answer that came before the stop.
func TestStopAnswers(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		response, err := w.get(t.Context(), w.url("/healthz"))
		require.NoError(t, err)
		require.NoError(t, w.Stop(t.Context()))
		line, _, err := bufio.NewReader(response.Body).ReadLine()
		assert.NoError(t, err)
		assert.Equal(t, "ok", string(line))
		assert.Equal(t, http.StatusOK, response.StatusCode)
		assert.NoError(t, response.Body.Close())
	})
}
