package inject

import (
	"bytes"
	"context"
	"io"
	"net/http"
)

// serveDiscarding handles a request and throws the response away. The request keeps
// its body and can be handled again. A long-running one is cancelled when its
// response begins, since it would not end by itself.
func serveDiscarding(next http.Handler, req *http.Request, longRunning bool) {
	ctx, cancel := context.WithCancelCause(req.Context())
	defer cancel(nil)
	w := &discardingWriter{header: http.Header{}, began: func() {}}
	if longRunning {
		w.began = func() { cancel(context.Canceled) }
	}
	discarded := req.Clone(ctx)
	if req.Body != nil {
		var read bytes.Buffer
		discarded.Body = io.NopCloser(io.TeeReader(req.Body, &read))
		unread(req, &read)
	}
	next.ServeHTTP(w, discarded)
}

// unread puts back what was read of a body. Read errors meet the next reader again.
func unread(req *http.Request, read io.Reader) {
	req.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(read, req.Body), req.Body}
}

type discardingWriter struct {
	header http.Header
	began  func() // is called when the response has begun, perhaps often
}

// Header implements http.ResponseWriter.
func (w *discardingWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *discardingWriter) WriteHeader(int) { w.began() }

// Write implements http.ResponseWriter.
func (w *discardingWriter) Write(p []byte) (int, error) {
	w.began()
	return len(p), nil
}

// Flush implements http.Flusher.
func (w *discardingWriter) Flush() { w.began() }

// CloseNotify implements http.CloseNotifier, or upstream's wrappers do not flush.
func (w *discardingWriter) CloseNotify() <-chan bool { return make(chan bool) }
