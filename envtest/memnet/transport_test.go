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
		if err := tr.Wait(ctx); err != nil {
			t.Errorf("handlers outlive Close: %v", err)
		}
	})
}

func get(t *testing.T, tr *Transport, ctx context.Context) *http.Response {
	t.Helper()
	req, _ := http.NewRequestWithContext(ctx, "GET", "https://cluster/x", nil)
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatalf("GET: %v", err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	if resp.Request != req {
		t.Error("resp.Request is not the request")
	}
	if req.URL.String() != before.URL.String() || fmt.Sprint(req.Header) != fmt.Sprint(before.Header) {
		t.Errorf("the caller's request was changed: %v %v", req.URL, req.Header)
	}
	if seen.RequestURI != "/api/v1//a%2Fb?watch=1&x=%20" || seen.URL.RawPath != "/api/v1//a%2Fb" || seen.URL.Host != "" {
		t.Errorf("RequestURI %q, URL %#v", seen.RequestURI, seen.URL)
	}
	if seen.Host != "cluster:443" || seen.ProtoMajor != 2 || seen.Body == nil || seen.ContentLength != 0 {
		t.Errorf("Host %q, Proto %q, Body %v, ContentLength %d", seen.Host, seen.Proto, seen.Body, seen.ContentLength)
	}
	if _, _, err := net.SplitHostPort(seen.RemoteAddr); err != nil {
		t.Errorf("RemoteAddr: %v", err)
	}
	if seen.TLS == nil || !seen.TLS.HandshakeComplete || len(seen.TLS.PeerCertificates) != 1 || seen.TLS.PeerCertificates[0] != cert {
		t.Errorf("TLS %+v", seen.TLS)
	}
	if seen.Context().Value(key{}) != nil {
		t.Error("a value of the client's context reached the handler")
	}
	if _, ok := seen.Context().Deadline(); ok {
		t.Error("the client's deadline reached the handler")
	}
	if seen.Header.Get("Accept-Encoding") != "" {
		t.Error("the transport asked for gzip by itself")
	}
	if err := tr.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if seen.Context().Err() == nil {
		t.Error("the handler's context outlives the handler")
	}
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
		if resp.StatusCode != 202 || resp.Header.Get("X-Early") != "1" || resp.Header.Get("X-Late") != "" || resp.ContentLength != -1 {
			t.Errorf("response %+v", resp)
		}
		lines := bufio.NewReader(resp.Body)
		for i := range 3 {
			time.Sleep(time.Hour) // the idle stream blocks durably
			want := fmt.Sprintf("event %d\n", i)
			next <- want
			if got, err := lines.ReadString('\n'); got != want || err != nil {
				t.Errorf("read %q, %v; want %q", got, err, want)
			}
		}
		close(next)
		if _, err := lines.ReadByte(); err != io.EOF {
			t.Errorf("at the end: %v, want EOF", err)
		}
		if err := tr.Wait(t.Context()); err != nil {
			t.Error(err)
		}
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
		if n, err := io.ReadFull(resp.Body, make([]byte, chunkBytes+1)); err != nil {
			t.Errorf("read %d bytes, %v", n, err)
		}
		proceed <- struct{}{}
		if n, err := resp.Body.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Errorf("at the end: %d, %v", n, err)
		}
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
		if n := written.Load(); n != 10_000 {
			t.Errorf("wrote %d bytes to a client that reads none, want 10000", n)
		}
		time.Sleep(time.Hour)
		io.ReadFull(resp.Body, make([]byte, 2500))
		synctest.Wait()
		if n := written.Load(); n != 12_000 {
			t.Errorf("wrote %d bytes after the client read 2500, want 12000", n)
		}
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
			if n, err := w.Write(want[10:]); n != len(want)-10 || err != nil {
				t.Errorf("write %d, %v", n, err)
			}
		}, func(t *testing.T, tr *Transport) {
			resp := get(t, tr, t.Context())
			var got []byte
			for buf := make([]byte, size); ; {
				n, err := resp.Body.Read(buf)
				got = append(got, buf[:n]...)
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(got, want) {
				t.Errorf("reads of %d: %d bytes differ from the %d written", size, len(got), len(want))
			}
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
					gone := w.(http.CloseNotifier).CloseNotify() //nolint:staticcheck // under test
					<-r.Context().Done()
					<-gone
					_, err := w.Write([]byte("late"))
					if ferr := http.NewResponseController(w).Flush(); ferr == nil {
						t.Error("a flush without a client passed")
					}
					ended <- err
				})}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				resp := get(t, tr, ctx)
				synctest.Wait()
				want := leave(cancel, resp)
				if err := tr.Wait(t.Context()); err != nil {
					t.Error(err)
				}
				if _, err := resp.Body.Read(make([]byte, 1)); !errors.Is(err, want) {
					t.Errorf("client reads %v, want %v", err, want)
				}
			})
			if err := <-ended; !errors.Is(err, net.ErrClosed) {
				t.Errorf("the handler's write: %v, want net.ErrClosed", err)
			}
		})
	}
}

func TestCancelFreesABlockedWriter(t *testing.T) {
	bubble(t, func(w http.ResponseWriter, r *http.Request) {
		n, err := w.Write(make([]byte, 1<<20))
		if err == nil || n > DefaultBufferBytes {
			t.Errorf("wrote %d, %v", n, err)
		}
	}, func(t *testing.T, tr *Transport) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		resp := get(t, tr, ctx)
		if err := tr.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("client reads %v, want deadline exceeded", err)
		}
	})
}

func TestCancelBeforeTheResponse(t *testing.T) {
	bubble(t, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, func(t *testing.T, tr *Transport) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		req, _ := http.NewRequestWithContext(ctx, "GET", "https://cluster/", nil)
		if _, err := tr.RoundTrip(req); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want deadline exceeded", err)
		}
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
					if !bytes.Contains(stack, []byte("TestHandlerPanics")) {
						t.Errorf("the stack does not show the handler:\n%s", stack)
					}
				}
				req, _ := http.NewRequestWithContext(t.Context(), "GET", "https://cluster/", nil)
				resp, err := tr.RoundTrip(req)
				if test.wantEarly != (err != nil) {
					t.Fatalf("RoundTrip error %v", err)
				}
				if err == nil {
					var body []byte
					if body, err = io.ReadAll(resp.Body); string(body) != test.wantBody {
						t.Errorf("body %q, want %q", body, test.wantBody)
					}
				}
				if err != io.ErrUnexpectedEOF {
					t.Errorf("error %v, want unexpected EOF", err)
				}
				if test.reported != (reported != nil) {
					t.Errorf("reported %v", reported)
				}
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
				if _, err := w.Write([]byte("lost")); err == nil || r.Context().Err() == nil {
					t.Error("the handler does not see that it has broken off")
				}
				panic(http.ErrAbortHandler)
			}
			bubble(t, handler, func(t *testing.T, tr *Transport) {
				req, _ := http.NewRequestWithContext(t.Context(), "GET", "https://cluster/x", nil)
				resp, err := tr.RoundTrip(req)
				if flushes {
					var body []byte
					body, err = io.ReadAll(resp.Body)
					if string(body) != "half" {
						t.Errorf("body %q", body)
					}
				}
				if err != syscall.ECONNRESET {
					t.Errorf("error %v", err)
				}
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
		if _, err := resp.Body.Read(make([]byte, 1)); err != io.ErrUnexpectedEOF {
			t.Errorf("client reads %v, want unexpected EOF", err)
		}
		req, _ := http.NewRequestWithContext(t.Context(), "GET", "https://cluster/", nil)
		if _, err := tr.RoundTrip(req); !errors.Is(err, net.ErrClosed) {
			t.Errorf("request after Close: %v, want net.ErrClosed", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := tr.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait with a handler running: %v, want deadline exceeded", err)
		}
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
				if _, err := io.Copy(w, r.Body); err != nil && err != io.ErrUnexpectedEOF {
					t.Errorf("handler reads %v", err)
				}
			}, func(t *testing.T, tr *Transport) {
				src := &countingBody{Reader: test.src}
				req, _ := http.NewRequestWithContext(t.Context(), "PUT", "https://cluster/", src)
				req.ContentLength = test.length
				resp, err := tr.RoundTrip(req)
				if err == nil {
					var body []byte
					if body, err = io.ReadAll(resp.Body); err == nil && string(body) != test.want {
						t.Errorf("echo %q, want %q", body, test.want)
					}
				}
				if (test.wantErr == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), test.wantErr) {
					t.Errorf("error %v, want %q", err, test.wantErr)
				}
				synctest.Wait()
				if n := src.closed.Load(); n != 1 {
					t.Errorf("the client's body was closed %d times", n)
				}
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
		if _, err := test.tr.RoundTrip(req); err == nil {
			t.Errorf("%s: passed", name)
		}
		if src.closed.Load() == 0 {
			t.Errorf("%s: the body stays open", name)
		}
	}
}
