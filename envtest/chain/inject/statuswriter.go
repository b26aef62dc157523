package inject

import (
	"net/http"
	"sync/atomic"

	"k8s.io/apiserver/pkg/endpoints/responsewriter"
)

// statusWriter remembers the status code of a response, and sends nothing more
// when it is silent.
type statusWriter struct {
	http.ResponseWriter
	code    int
	written bool
	silent  *atomic.Bool
}

var _ responsewriter.UserProvidedDecorator = (*statusWriter)(nil)

// Unwrap implements responsewriter.UserProvidedDecorator.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(code int) {
	if w.silent.Load() {
		return
	}
	if !w.written {
		w.code, w.written = code, code >= http.StatusOK || code == http.StatusSwitchingProtocols
	}
	w.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (w *statusWriter) Write(p []byte) (int, error) {
	if w.silent.Load() {
		return len(p), nil
	}
	w.written = true
	return w.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (w *statusWriter) Flush() {
	if flusher, ok := w.ResponseWriter.(http.Flusher); ok && !w.silent.Load() {
		w.written = true
		flusher.Flush()
	}
}

// sent is the status code that was sent, 0 if none was.
func (w *statusWriter) sent() int {
	if w.silent.Load() && !w.written {
		return 0
	}
	return w.code
}
