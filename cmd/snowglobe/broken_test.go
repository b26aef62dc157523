package main

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"snowglobe.test/envtest"
)

// TestBrokenTarget runs the commands that judge a cluster on one that breaks its promises.
func TestBrokenTarget(t *testing.T) {
	kubeconfig := brokenCluster(t)
	for command, test := range map[string]struct {
		args []string
		says string
	}{
		"conformance": {[]string{"--focus", "S15/readyz-answers-ok"}, "1 of 1 cases failed: S15/readyz-answers-ok"},
		"bench watch": {[]string{"--watchers", "1", "--writers", "1", "--duration", "50ms"}, "were not delivered once each and in order: 1 of 1 watchers"},
	} {
		t.Run(command, func(t *testing.T) {
			var stderr bytes.Buffer
			args := append(append(strings.Fields(command), "--kubeconfig", kubeconfig), test.args...)
			assert.Equal(t, exitBroken, execute(t.Context(), args, io.Discard, &stderr), "%s", &stderr)
			assert.Contains(t, stderr.String(), test.says)
		})
	}
}

// brokenCluster is the kubeconfig of a cluster that is not healthy, and sends each event of
// a watch twice.
func brokenCluster(t *testing.T) string {
	t.Helper()
	config := envtest.Start(t).Config()
	transport, err := rest.TransportFor(config)
	require.NoError(t, err)
	target, err := url.Parse(config.Host)
	require.NoError(t, err)
	proxy := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ModifyResponse: func(r *http.Response) error {
			if r.Request.URL.Query().Get("watch") != "" {
				r.Body = twice(r.Body)
			}
			return nil
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			http.Error(w, "snowed under", http.StatusInternalServerError)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kube")
	require.NoError(t, os.WriteFile(kubeconfig, []byte(kubeconfigOf(server.URL)), 0o600))
	return kubeconfig
}

// twice is a text with each of its lines twice.
func twice(text io.ReadCloser) io.ReadCloser {
	read, write := io.Pipe()
	go func() {
		lines := bufio.NewReader(text)
		for {
			line, err := lines.ReadString('\n')
			if err == nil {
				_, err = io.WriteString(write, line+line)
			}
			if err != nil {
				write.CloseWithError(err)
				return
			}
		}
	}()
	return struct {
		io.Reader
		io.Closer
	}{read, closers{text, read}}
}

// closers close one after another.
type closers []io.Closer

func (c closers) Close() error {
	for _, each := range c {
		_ = each.Close()
	}
	return nil
}
