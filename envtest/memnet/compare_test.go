package memnet

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// exchangeCase is one request and the handler that answers it.
type exchangeCase struct {
	name    string
	method  string // GET if empty
	target  string // "/" if empty
	body    io.Reader
	header  http.Header
	handler http.HandlerFunc
}

func exchangeCases() []exchangeCase {
	write := func(s string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, s) }
	}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	set := func(kv ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(kv); i += 2 {
				w.Header()[kv[i]] = append(w.Header()[kv[i]], kv[i+1])
			}
			io.WriteString(w, "body")
		}
	}
	return []exchangeCase{
		{name: "nothing", handler: func(http.ResponseWriter, *http.Request) {}},
		{name: "small", handler: write("hello")},
		{name: "html", handler: write("<html>")},
		{name: "one chunk", handler: write(strings.Repeat("x", chunkBytes))},
		{name: "more than a chunk", handler: write(strings.Repeat("x", chunkBytes+1))},
		{name: "large", handler: write(strings.Repeat("0123456789", 100_000))},
		{name: "404", handler: http.NotFound},
		{name: "204", handler: status(204)},
		{name: "304", handler: status(304)},
		{name: "204 with a body", handler: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(204)
			if _, err := io.WriteString(w, "x"); err != http.ErrBodyNotAllowed {
				panic(fmt.Sprint("write: ", err))
			}
		}},
		{name: "informational first", handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", "</style.css>")
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(201)
			w.WriteHeader(500)
		}},
		{name: "odd status", handler: status(299)},
		{name: "unknown status", handler: status(799)},
		{name: "redirect", handler: http.RedirectHandler("/elsewhere", http.StatusFound).ServeHTTP},
		{name: "head", method: "HEAD", handler: write("hello")},
		{name: "head of nothing", method: "HEAD", handler: status(200)},
		{name: "head of much", method: "HEAD", handler: write(strings.Repeat("x", 3*chunkBytes))},
		{name: "head with a length", method: "HEAD", handler: set("Content-Length", "4")},
		{name: "stated length", handler: set("Content-Length", "4")},
		{name: "bad length", handler: set("Content-Length", "four")},
		{name: "flush first", handler: func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			w.Header().Set("X-Late", "1")
			io.WriteString(w, "hello")
		}},
		{name: "own type", handler: set("Content-Type", "application/json")},
		{name: "no type", handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			io.WriteString(w, "hello")
		}},
		{name: "encoded", handler: set("Content-Encoding", "gzip")},
		{name: "many values", handler: set("Warning", "a", "Warning", "b", "Vary", "Accept", "x-lower", "1")},
		{name: "hop by hop", handler: set("Connection", "keep-alive", "Keep-Alive", "5", "Upgrade", "h3")},
		{name: "unsendable value", handler: set("X-Bad", "a\nb", "X-Bad", "good")},
		{name: "declared trailers", handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "X-Sum, X-Absent")
			io.WriteString(w, "hello")
			w.Header().Set("X-Sum", "42")
		}},
		{name: "streamed trailers", handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "X-Sum")
			w.(http.Flusher).Flush()
			io.WriteString(w, "hello")
			w.Header().Set("X-Sum", "42")
			w.Header().Set(http.TrailerPrefix+"X-More", "43")
		}},
		{name: "undeclared trailers", handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(http.TrailerPrefix+"X-More", "43")
		}},
		{name: "request", target: "/a/../b%2Fc//d?x=1&y=%20#fragment", handler: describe},
		{name: "request of a root", target: "?x", handler: describe},
		{name: "request header", handler: describe, header: http.Header{
			"Accept": {"a", "b"}, "User-Agent": {"me"}, "x-lower": {"1"}, "Keep-Alive": {"1"}, "Cookie": {"a=b"}, "Te": {"trailers"}}},
		{name: "no user agent", handler: describe, header: http.Header{"User-Agent": {""}}},
		{name: "post", method: "POST", body: strings.NewReader("hello"), handler: describe},
		{name: "post nothing", method: "POST", handler: describe},
		{name: "delete with a body", method: "DELETE", body: strings.NewReader("{}"), handler: describe},
		{name: "patch of unknown length", method: "PATCH", body: io.MultiReader(strings.NewReader("a"), strings.NewReader("b")), handler: describe},
		{name: "unread body", method: "PUT", body: strings.NewReader("hello"), handler: status(409)},
		{name: "unknown method", method: "FROB", handler: describe},
	}
}

// describe answers with the request as the handler sees it.
func describe(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %q %q %q %q\n%s %d %d %q %v tls=%t\n", r.Method, r.RequestURI, r.URL.Path, r.URL.RawPath, r.URL.RawQuery,
		r.Proto, r.ProtoMajor, r.ContentLength, body, err, r.TLS != nil)
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		fmt.Fprintf(w, "%s: %q\n", name, r.Header[name])
	}
}

// summary is everything in a response that both transports must agree on.
func summary(t *testing.T, rt http.RoundTripper, base string, c exchangeCase, body []byte) string {
	t.Helper()
	method, target := c.method, c.target
	if method == "" {
		method = "GET"
	}
	if target == "" {
		target = "/"
	}
	var src io.Reader
	switch c.body.(type) {
	case nil:
	case *strings.Reader:
		src = bytes.NewReader(body)
	default: // hides the length
		src = io.MultiReader(bytes.NewReader(body))
	}
	req, err := http.NewRequestWithContext(t.Context(), method, base+target, src)
	require.NoError(t, err)
	maps.Copy(req.Header, c.header)
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return "error"
	}
	defer resp.Body.Close()
	var b strings.Builder
	announced := slices.Sorted(maps.Keys(resp.Trailer))
	got, err := io.ReadAll(resp.Body)
	fmt.Fprintf(&b, "%s|%d|%s|length %d|error %t\n", resp.Status, resp.StatusCode, resp.Proto, resp.ContentLength, err != nil)
	for _, name := range slices.Sorted(maps.Keys(resp.Header)) {
		if name != "Date" {
			fmt.Fprintf(&b, "%s: %q\n", name, resp.Header[name])
		}
	}
	if err != nil {
		got = nil // how much arrives before the break depends on chunking
	}
	fmt.Fprintf(&b, "trailers %q then %v\n%d bytes, sum %x\n%.300q\n", announced, resp.Trailer, len(got), sha256.Sum256(got), got)
	return b.String()
}

// wire starts a real HTTP/2 server over TLS for the same handler.
func wire(t *testing.T, h http.Handler) (base string, rt http.RoundTripper) {
	server := httptest.NewUnstartedServer(h)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	transport := server.Client().Transport.(*http.Transport)
	transport.DisableCompression = true
	return server.URL, transport
}

func TestSameAsTheWire(t *testing.T) {
	for _, c := range exchangeCases() {
		t.Run(c.name, func(t *testing.T) {
			var body []byte
			if c.body != nil {
				body, _ = io.ReadAll(c.body)
			}
			base, overWire := wire(t, c.handler)
			tr := &Transport{Handler: c.handler}
			want := summary(t, overWire, base, c, body)
			got := summary(t, tr, base, c, body)
			assert.Equal(t, want, got, "direct")
			assert.NoError(t, tr.Wait(t.Context()))
		})
	}
}

// TestSameAsTheWireAtRandom compares handlers that behave randomly, by seed.
func TestSameAsTheWireAtRandom(t *testing.T) {
	const seeds = 500
	script := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var seed uint64
		fmt.Sscan(r.Header.Get("X-Seed"), &seed)
		play(rand.New(rand.NewPCG(seed, 0)), w)
	})
	base, overWire := wire(t, script)
	tr := &Transport{Handler: script}
	for seed := range seeds {
		c := exchangeCase{method: []string{"GET", "HEAD", "POST"}[seed%3], header: http.Header{"X-Seed": {fmt.Sprint(seed)}}}
		want := summary(t, overWire, base, c, nil)
		got := summary(t, tr, base, c, nil)
		require.Equal(t, want, got, "seed %d, direct", seed)
	}
	assert.NoError(t, tr.Wait(t.Context()))
}

// play writes a random response.
func play(dice *rand.Rand, w http.ResponseWriter) {
	if dice.IntN(4) == 0 {
		w.Header().Set("Trailer", "X-A")
	}
	for range dice.IntN(8) {
		switch dice.IntN(6) {
		case 0:
			w.WriteHeader([]int{200, 201, 204, 304, 404, 500, 103}[dice.IntN(7)])
		case 1:
			w.(http.Flusher).Flush()
		case 2:
			w.Header().Set([]string{"X-A", "Content-Type", "Etag", http.TrailerPrefix + "X-B"}[dice.IntN(4)], "v")
		case 3:
			w.Write(make([]byte, dice.IntN(3*chunkBytes)))
		case 4:
			io.WriteString(w, strings.Repeat("a", dice.IntN(100)))
		case 5:
			w.Write(nil)
		}
	}
	if dice.IntN(10) == 0 {
		panic(http.ErrAbortHandler)
	}
}
