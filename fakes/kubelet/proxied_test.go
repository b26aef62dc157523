package kubelet_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/proxy"
	translator "k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	"snowglobe.test/fakes/kubelet"
)

type responder struct{}

func (responder) Error(w http.ResponseWriter, _ *http.Request, err error) {
	http.Error(w, err.Error(), http.StatusInternalServerError)
}

// apiServer proxies to the kubelet with kube-apiserver's handlers: translated, as to a
// kubelet that only knows SPDY, or not.
func apiServer(t *testing.T, w *world, translated bool) *rest.Config {
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		location := w.parse(r.URL.Path)
		location.RawQuery = r.URL.RawQuery
		upgrade := proxy.NewUpgradeAwareHandler(location, w.transport, false, true, responder{})
		var handler http.Handler = upgrade
		switch {
		case !translated:
		case strings.HasPrefix(r.URL.Path, "/portForward/"):
			handler = translator.NewTranslatingHandler(upgrade, translator.NewTunnelingHandler(upgrade), wsstream.IsWebSocketRequestWithTunnelingProtocol)
		default:
			options := translator.Options{Stdin: true, Stdout: true, Stderr: true}
			handler = translator.NewTranslatingHandler(upgrade, translator.NewStreamTranslatorHandler(location, w.transport, 0, options), wsstream.IsWebSocketRequestWithStreamCloseProtocol)
		}
		handler.ServeHTTP(rw, r)
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

// TestThroughAPIServer runs a command and forwards a port through what kube-apiserver
// has in between.
func TestThroughAPIServer(t *testing.T) {
	for _, translated := range []bool{true, false} {
		t.Run(fmt.Sprint("translated ", translated), func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			w := newWorld(t, l, kubelet.Config{}, nil)
			w.app.Exec = func(_ context.Context, p *kubelet.Process) (int, error) {
				all, err := io.ReadAll(p.Stdin)
				fmt.Fprintf(p.Stdout, "%s", bytes.ToUpper(all))
				fmt.Fprint(p.Stderr, "careful")
				return 7, err
			}
			w.pod.Ports = map[int]func(context.Context, net.Conn) error{80: web}
			config := apiServer(t, w, translated)
			runThrough(t, config)
			forwardThrough(t, config)
			sessions, err := w.AwaitSessions(t.Context(), 3)
			require.NoError(t, err)
			want := []string{"v4.channel.k8s.io", "v5.channel.k8s.io", "SPDY/3.1+portforward.k8s.io"}
			if translated {
				want = []string{"v4.channel.k8s.io", "v4.channel.k8s.io", "portforward.k8s.io"}
			}
			assert.Equal(t, want, []string{sessions[0].Protocol, sessions[1].Protocol, sessions[2].Protocol})
			w.end()
		})
	}
}

func runThrough(t *testing.T, config *rest.Config) {
	t.Helper()
	u := config.Host + "/exec/default/web/app?input=1&output=1&error=1&command=upper"
	parsed, err := url.Parse(u)
	require.NoError(t, err)
	overSPDY, err := remotecommand.NewSPDYExecutor(config, "POST", parsed)
	require.NoError(t, err)
	overWebSocket, err := remotecommand.NewWebSocketExecutor(config, "GET", u)
	require.NoError(t, err)
	for _, executor := range []remotecommand.Executor{overSPDY, overWebSocket} {
		var stdout, stderr bytes.Buffer
		err := executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: strings.NewReader("hello"), Stdout: &stdout, Stderr: &stderr})
		var exit exec.CodeExitError
		require.ErrorAs(t, err, &exit)
		assert.Equal(t, "7 HELLO careful", fmt.Sprint(exit.Code, " ", &stdout, " ", &stderr))
	}
}

func forwardThrough(t *testing.T, config *rest.Config) {
	t.Helper()
	u, err := url.Parse(config.Host + "/portForward/default/web")
	require.NoError(t, err)
	dialer, err := portforward.NewSPDYOverWebsocketDialerForStreaming(u, config)
	require.NoError(t, err)
	conn, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
	require.NoError(t, err)
	f := &forwarding{conn, t, 0}
	data, _ := f.connect(80)
	_, err = io.WriteString(data, "POST / HTTP/1.1\r\nHost: web\r\nContent-Length: 5\r\n\r\nhello")
	require.NoError(t, err)
	response, err := http.ReadResponse(bufio.NewReader(data), nil)
	require.NoError(t, err)
	body, err := io.ReadAll(response.Body)
	assert.NoError(t, err)
	assert.Equal(t, "hello", string(body))
	assert.NoError(t, data.Close())
	f.close()
}
