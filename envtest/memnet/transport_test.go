package memnet

import (
	"bufio"
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bubble runs f with a transport to h inside a bubble, and then checks that
// closing the transport ends every handler.
func bubble(t *testing.T, h http.HandlerFunc, f func(t *testing.T, tr *Transport)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		tr := &Transport{Handler: h}
		f(t, tr)
		tr.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		assert.NoError(t, tr.Wait(ctx), "handlers outlive Close")
	})
}

func get(t *testing.T, tr *Transport, ctx context.Context) *http.Response {
	t.Helper()
	req, _ := http.NewRequestWithContext(ctx, "GET", "https://cluster/x", nil)
	resp, err := tr.RoundTrip(req)
	require.NoError(t, err, "GET")
	return resp
}

func TestRequestAsTheServerSeesIt(t *testing.T) {
	cert := &x509.Certificate{Raw: []byte("leaf")}
	var seen *http.Request
	tr := &Transport{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen = r
			r.Header.Del("Authorization")
			r.Header.Add("X-List", "server")
			r.URL.Path = "/changed"
		}),
		PeerCertificates: []*x509.Certificate{cert},
	}
	type key struct{}
	ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "client"), time.Minute)
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, "GET", "https://cluster:443/api/v1//a%2Fb?watch=1&x=%20", nil)
	req.Header.Set("Authorization", "Bearer t")
	req.Header.Set("X-List", "client")
	before := req.Clone(ctx)
	resp, err := tr.RoundTrip(req)
	require.NoError(t, err)
	assert.Same(t, req, resp.Request, "resp.Request is not the request")
	assert.Equal(t, before.URL.String(), req.URL.String(), "the caller's request was changed: %v %v", req.URL, req.Header)
	assert.Equal(t, fmt.Sprint(before.Header), fmt.Sprint(req.Header), "the caller's request was changed: %v %v", req.URL, req.Header)
	assert.Equal(t, "/api/v1//a%2Fb?watch=1&x=%20", seen.RequestURI, "RequestURI %q, URL %#v", seen.RequestURI, seen.URL)
	assert.Equal(t, "/api/v1//a%2Fb", seen.URL.RawPath, "RequestURI %q, URL %#v", seen.RequestURI, seen.URL)
	assert.Empty(t, seen.URL.Host, "RequestURI %q, URL %#v", seen.RequestURI, seen.URL)
	assert.Equal(t, "cluster:443", seen.Host, "Host %q, Proto %q, Body %v, ContentLength %d", seen.Host, seen.Proto, seen.Body, seen.ContentLength)
	assert.Equal(t, 2, seen.ProtoMajor, "Host %q, Proto %q, Body %v, ContentLength %d", seen.Host, seen.Proto, seen.Body, seen.ContentLength)
	assert.True(t, seen.Body != nil, "Host %q, Proto %q, Body %v, ContentLength %d", seen.Host, seen.Proto, seen.Body, seen.ContentLength)
	assert.Equal(t, int64(0), seen.ContentLength, "Host %q, Proto %q, Body %v, ContentLength %d", seen.Host, seen.Proto, seen.Body, seen.ContentLength)
	_, _, err = net.SplitHostPort(seen.RemoteAddr)
	assert.NoError(t, err, "RemoteAddr")
	assert.False(t, seen.TLS == nil || !seen.TLS.HandshakeComplete || len(seen.TLS.PeerCertificates) != 1 || seen.TLS.PeerCertificates[0] != cert, "TLS %+v", seen.TLS)
	assert.True(t, seen.Context().Value(key{}) == nil, "a value of the client's context reached the handler")
	_, ok := seen.Context().Deadline()
	assert.False(t, ok, "the client's deadline reached the handler")
	assert.Empty(t, seen.Header.Get("Accept-Encoding"), "the transport asked for gzip by itself")
	require.NoError(t, tr.Wait(t.Context()))
	assert.Error(t, seen.Context().Err(), "the handler's context outlives the handler")
}

func TestResponseStreams(t *testing.T) {
	next := make(chan string)
	h := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Early", "1")
		w.WriteHeader(http.StatusAccepted)
		w.(http.Flusher).Flush()
		w.Header().Set("X-Late", "1")
		for s := range next {
			io.WriteString(w, s)
			w.(http.Flusher).Flush()
		}
	}
	synctest.Test(t, func(t *testing.T) {
		next = make(chan string)
		tr := &Transport{Handler: http.HandlerFunc(h)}
		resp := get(t, tr, t.Context())
		assert.Equal(t, 202, resp.StatusCode, "response %+v", resp)
		assert.Equal(t, "1", resp.Header.Get("X-Early"), "response %+v", resp)
		assert.Empty(t, resp.Header.Get("X-Late"), "response %+v", resp)
		assert.Equal(t, int64(-1), resp.ContentLength, "response %+v", resp)
		lines := bufio.NewReader(resp.Body)
		for i := range 3 {
			time.Sleep(time.Hour) // the idle stream blocks durably
			want := fmt.Sprintf("event %d\n", i)
			next <- want
			got, err := lines.ReadString('\n')
			assert.Equal(t, want, got, "read")
			assert.NoError(t, err, "read")
		}
		close(next)
		_, err := lines.ReadByte()
		assert.True(t, err == io.EOF, "at the end: %v, want EOF", err)
		assert.NoError(t, tr.Wait(t.Context()))
	})
}

// What is not flushed is not seen, until a chunk is full.
func TestWritesAreBufferedUntilFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		proceed := make(chan struct{})
		tr := &Transport{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(200)
			w.Write(make([]byte, chunkBytes))
			<-proceed
			w.Write(make([]byte, 1))
			<-proceed
		})}
		began := make(chan *http.Response)
		go func() { began <- get(t, tr, t.Context()) }()
		synctest.Wait()
		select {
		case <-began:
			t.Fatal("the response began with a chunk that was not full")
		default:
		}
		proceed <- struct{}{}
		resp := <-began
		n, err := io.ReadFull(resp.Body, make([]byte, chunkBytes+1))
		assert.NoError(t, err, "read %d bytes", n)
		proceed <- struct{}{}
		n, err = resp.Body.Read(make([]byte, 1))
		assert.Equal(t, 0, n, "at the end: %d, %v", n, err)
		assert.True(t, err == io.EOF, "at the end: %d, %v", n, err)
	})
}

func TestSlowReaderBlocksWriter(t *testing.T) {
	var written atomic.Int64
	bubble(t, func(w http.ResponseWriter, r *http.Request) {
		for {
			n, err := w.Write(make([]byte, 1000))
			written.Add(int64(n))
			if err != nil {
				return
			}
			w.(http.Flusher).Flush()
		}
	}, func(t *testing.T, tr *Transport) {
		tr.BufferBytes = 10_000
		resp := get(t, tr, t.Context())
		synctest.Wait()
		assert.Equal(t, int64(10_000), written.Load(), "wrote")
		time.Sleep(time.Hour)
		io.ReadFull(resp.Body, make([]byte, 2500))
		synctest.Wait()
		assert.Equal(t, int64(12_000), written.Load(), "wrote")
	})
}

// One large write reaches the reader whole, in any pattern of reads.
func TestLargeWrite(t *testing.T) {
	want := make([]byte, 1<<20+7)
	for i := range want {
		want[i] = byte(i * 7 / 3)
	}
	for _, size := range []int{1 << 9, 1000, 4096, 1 << 16, 1 << 21} {
		bubble(t, func(w http.ResponseWriter, r *http.Request) {
			w.Write(want[:10])
			n, err := w.Write(want[10:])
			assert.Equal(t, len(want)-10, n, "write")
			assert.NoError(t, err, "write")
		}, func(t *testing.T, tr *Transport) {
			resp := get(t, tr, t.Context())
			var got []byte
			for buf := make([]byte, size); ; {
				n, err := resp.Body.Read(buf)
				got = append(got, buf[:n]...)
				if err == io.EOF {
					break
				}
				require.NoError(t, err)
			}
			assert.True(t, bytes.Equal(got, want), "reads of %d: %d bytes differ from the %d written", size, len(got), len(want))
		})
	}
}

func TestClientLeaves(t *testing.T) {
	for name, leave := range map[string]func(cancel func(), resp *http.Response) error{
		"cancel": func(cancel func(), resp *http.Response) error { cancel(); return context.Canceled },
		"close":  func(_ func(), resp *http.Response) error { resp.Body.Close(); return http.ErrBodyReadAfterClose },
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 1)
			synctest.Test(t, func(t *testing.T) {
				tr := &Transport{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.(http.Flusher).Flush()
					//lint:ignore SA1019 it is under test
					gone := w.(http.CloseNotifier).CloseNotify()
					<-r.Context().Done()
					<-gone
					_, err := w.Write([]byte("late"))
					assert.Error(t, http.NewResponseController(w).Flush(), "a flush without a client passed")
					ended <- err
				})}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				resp := get(t, tr, ctx)
				synctest.Wait()
				want := leave(cancel, resp)
				assert.NoError(t, tr.Wait(t.Context()))
				_, err := resp.Body.Read(make([]byte, 1))
				assert.ErrorIs(t, err, want, "client reads")
			})
			assert.ErrorIs(t, <-ended, net.ErrClosed, "the handler's write")
		})
	}
}

func TestCancelFreesABlockedWriter(t *testing.T) {
	bubble(t, func(w http.ResponseWriter, r *http.Request) {
		n, err := w.Write(make([]byte, 1<<20))
		assert.Error(t, err, "wrote")
		assert.LessOrEqual(t, n, DefaultBufferBytes, "wrote")
	}, func(t *testing.T, tr *Transport) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		resp := get(t, tr, ctx)
		assert.NoError(t, tr.Wait(t.Context()))
		_, err := io.Copy(io.Discard, resp.Body)
		assert.ErrorIs(t, err, context.DeadlineExceeded, "client reads")
	})
}

func TestCancelBeforeTheResponse(t *testing.T) {
	bubble(t, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, func(t *testing.T, tr *Transport) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		req, _ := http.NewRequestWithContext(ctx, "GET", "https://cluster/", nil)
		_, err := tr.RoundTrip(req)
		assert.ErrorIs(t, err, context.DeadlineExceeded, "error")
	})
}

func TestHandlerPanics(t *testing.T) {
	tests := []struct {
		name      string
		value     any
		before    func(w http.ResponseWriter)
		wantBody  string
		wantEarly bool // RoundTrip itself fails
		reported  bool
	}{
		{"before the response", "boom", func(w http.ResponseWriter) { w.Write([]byte("lost")) }, "", true, true},
		{"abort", http.ErrAbortHandler, func(http.ResponseWriter) {}, "", true, false},
		{"after a flush", "boom", func(w http.ResponseWriter) {
			w.Write([]byte("kept"))
			w.(http.Flusher).Flush()
			w.Write([]byte("lost"))
		}, "kept", false, true},
		{"bad status", nil, func(w http.ResponseWriter) { w.WriteHeader(42) }, "", true, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(w http.ResponseWriter, r *http.Request) {
				test.before(w)
				panic(test.value)
			}, func(t *testing.T, tr *Transport) {
				var reported any
				tr.OnPanic = func(v any, stack []byte) {
					reported = v
					assert.True(t, bytes.Contains(stack, []byte("TestHandlerPanics")), "the stack does not show the handler:\n%s", stack)
				}
				req, _ := http.NewRequestWithContext(t.Context(), "GET", "https://cluster/", nil)
				resp, err := tr.RoundTrip(req)
				require.Equal(t, test.wantEarly, err != nil, "RoundTrip error %v", err)
				if err == nil {
					var body []byte
					body, err = io.ReadAll(resp.Body)
					assert.Equal(t, test.wantBody, string(body), "body")
				}
				assert.True(t, err == io.ErrUnexpectedEOF, "error %v, want unexpected EOF", err)
				assert.Equal(t, reported != nil, test.reported, "reported %v", reported)
			})
		})
	}
}

// TestAbort breaks responses off with an error of the handler's choice.
func TestAbort(t *testing.T) {
	for name, flushes := range map[string]bool{"before the response": false, "in the middle": true} {
		t.Run(name, func(t *testing.T) {
			handler := func(w http.ResponseWriter, r *http.Request) {
				io.WriteString(w, "half")
				if flushes {
					w.(http.Flusher).Flush()
				}
				w.(interface{ Abort(error) }).Abort(syscall.ECONNRESET)
				_, err := w.Write([]byte("lost"))
				assert.Error(t, err, "the handler does not see that it has broken off")
				assert.Error(t, r.Context().Err(), "the handler does not see that it has broken off")
				panic(http.ErrAbortHandler)
			}
			bubble(t, handler, func(t *testing.T, tr *Transport) {
				req, _ := http.NewRequestWithContext(t.Context(), "GET", "https://cluster/x", nil)
				resp, err := tr.RoundTrip(req)
				if flushes {
					var body []byte
					body, err = io.ReadAll(resp.Body)
					assert.Equal(t, "half", string(body), "body")
				}
				assert.True(t, err == syscall.ECONNRESET, "error %v", err)
			})
		})
	}
}

func TestCloseBreaksOffAndRefuses(t *testing.T) {
	bubble(t, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		time.Sleep(time.Minute) // a handler that is slow to leave
	}, func(t *testing.T, tr *Transport) {
		resp := get(t, tr, t.Context())
		tr.Close()
		_, err := resp.Body.Read(make([]byte, 1))
		assert.True(t, err == io.ErrUnexpectedEOF, "client reads %v, want unexpected EOF", err)
		req, _ := http.NewRequestWithContext(t.Context(), "GET", "https://cluster/", nil)
		_, err = tr.RoundTrip(req)
		assert.ErrorIs(t, err, net.ErrClosed, "request after Close")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.ErrorIs(t, tr.Wait(ctx), context.DeadlineExceeded, "Wait with a handler running")
	})
}

// countingBody counts how often a transport closes it.
type countingBody struct {
	io.Reader
	closed atomic.Int32
}

func (b *countingBody) Close() error { b.closed.Add(1); return nil }

func TestRequestBody(t *testing.T) {
	broken := errors.New("disk on fire")
	tests := []struct {
		name    string
		src     io.Reader
		length  int64
		want    string
		wantErr string
	}{
		{"stated length", strings.NewReader("hello"), 5, "hello", ""},
		{"no length", strings.NewReader("hello"), 0, "hello", ""},
		{"longer than stated", strings.NewReader("hello"), 4, "hell", ""},
		{"shorter than stated", strings.NewReader("hello"), 9, "", "ContentLength=9 with Body length 5"},
		{"broken", io.MultiReader(strings.NewReader("he"), errReader{broken}), 0, "", "disk on fire"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(w http.ResponseWriter, r *http.Request) {
				_, err := io.Copy(w, r.Body)
				assert.False(t, err != nil && err != io.ErrUnexpectedEOF, "handler reads %v", err)
			}, func(t *testing.T, tr *Transport) {
				src := &countingBody{Reader: test.src}
				req, _ := http.NewRequestWithContext(t.Context(), "PUT", "https://cluster/", src)
				req.ContentLength = test.length
				resp, err := tr.RoundTrip(req)
				if err == nil {
					var body []byte
					body, err = io.ReadAll(resp.Body)
					assert.False(t, err == nil && string(body) != test.want, "echo %q, want %q", body, test.want)
				}
				assert.Equal(t, test.wantErr == "", err == nil, "error %v, want %q", err, test.wantErr)
				assert.False(t, err != nil && !strings.Contains(err.Error(), test.wantErr), "error %v, want %q", err, test.wantErr)
				synctest.Wait()
				assert.Equal(t, int32(1), src.closed.Load(), "the client's body was closed")
			})
		})
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

// A refused request still gets its body closed.
func TestRefusalsCloseTheBody(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	closed := &Transport{Handler: http.NotFoundHandler()}
	closed.Close()
	for name, test := range map[string]struct {
		tr     *Transport
		method string
		ctx    context.Context
	}{
		"no handler": {&Transport{}, "POST", t.Context()},
		"connect":    {&Transport{Handler: http.NotFoundHandler()}, "CONNECT", t.Context()},
		"cancelled":  {&Transport{Handler: http.NotFoundHandler()}, "POST", cancelled},
		"closed":     {closed, "POST", t.Context()},
	} {
		src := &countingBody{Reader: strings.NewReader("x")}
		req, _ := http.NewRequestWithContext(test.ctx, test.method, "https://cluster/", src)
		_, err := test.tr.RoundTrip(req)
		assert.Error(t, err, "%s: passed", name)
		assert.NotEqual(t, int32(0), src.closed.Load(), "%s: the body stays open", name)
	}
}
