package inject

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"

	"snowglobe.test/envtest/fault"
)

// connection is the client's connection as one request sees it. Once a rule has
// aborted or dropped it, nothing more is sent, not even by upstream's filters, which
// do not notice.
type connection struct {
	silent  atomic.Bool
	mu      sync.Mutex
	cause   error // with which it is aborted
	dropped bool
}

// abort breaks the connection with an error of the network.
func (c *connection) abort(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.silent.CompareAndSwap(false, true) {
		c.cause = cause
	}
}

// drop makes the client wait for a response that never comes.
func (c *connection) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.silent.CompareAndSwap(false, true) {
		c.dropped = true
	}
}

var errDropped = errors.New("the request was dropped")

// err is how the connection broke, nil if it did not.
func (c *connection) err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dropped {
		return errDropped
	}
	return c.cause
}

// aborter is the response writer of a client in the process: it takes the error with
// which the connection breaks. Other clients see a reset stream.
type aborter interface{ Abort(cause error) }

// close must be called when upstream has handled the request. If the connection was
// aborted or dropped it panics with http.ErrAbortHandler, by which net/http closes it.
func (c *connection) close(client context.Context, i *fault.Injector, w http.ResponseWriter) {
	if !c.silent.Load() {
		return
	}
	if err := c.err(); errors.Is(err, errDropped) {
		_ = i.Lost(client)
	} else if a, ok := w.(aborter); ok {
		a.Abort(err)
	}
	panic(http.ErrAbortHandler)
}
