package memnet

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// transports are the ways to reach a handler that the benchmarks compare.
func transports(b *testing.B, h http.Handler) map[string]http.RoundTripper {
	l := Listen()
	server := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() { defer close(done); server.Serve(l) }()
	overConn := &http.Transport{DialContext: l.DialNetwork, MaxIdleConnsPerHost: 100, DisableCompression: true}
	b.Cleanup(func() {
		overConn.CloseIdleConnections()
		server.Close()
		<-done
	})
	return map[string]http.RoundTripper{"direct": &Transport{Handler: h}, "conn": overConn}
}

func BenchmarkGet(b *testing.B) {
	body := make([]byte, 800)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write(body)
	})
	for name, rt := range transports(b, h) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			for b.Loop() {
				req, _ := http.NewRequestWithContext(ctx, "GET", "http://cluster/api/v1/namespaces/default", nil)
				req.Header.Set("Accept", "application/json")
				resp, err := rt.RoundTrip(req)
				require.NoError(b, err)
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
}

// BenchmarkList is a response that one write fills with a mebibyte.
func BenchmarkList(b *testing.B) {
	body := make([]byte, 1<<20)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write(body) })
	for name, rt := range transports(b, h) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				req, _ := http.NewRequestWithContext(b.Context(), "GET", "http://cluster/api/v1/pods", nil)
				resp, err := rt.RoundTrip(req)
				require.NoError(b, err)
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
}

// BenchmarkWatch is one event of 300 bytes, written, flushed and read.
func BenchmarkWatch(b *testing.B) {
	event := append(make([]byte, 299), '\n')
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			w.Write(event)
			w.(http.Flusher).Flush()
		}
	})
	for name, rt := range transports(b, h) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			req, _ := http.NewRequestWithContext(b.Context(), "GET", "http://cluster/api/v1/pods?watch=1", nil)
			resp, err := rt.RoundTrip(req)
			require.NoError(b, err)
			defer resp.Body.Close()
			lines := bufio.NewReader(resp.Body)
			for b.Loop() {
				_, err := lines.ReadSlice('\n')
				require.NoError(b, err)
			}
		})
	}
}
