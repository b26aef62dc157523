package inject

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"

	"snowglobe.test/envtest/fault"
)

// connection is the connection of one request to its client, as rules have left
// it. Once it is aborted or dropped the client is sent nothing more, not even by
// upstream's filters, which go on as if all were well.
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

// err says what became of the connection, nil if nothing did.
func (c *connection) err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dropped {
		return errDropped
	}
	return c.cause
}

// aborter is the writer of a client in the process, which can be told how its
// connection broke. Others see a stream that is reset.
type aborter interface{ Abort(cause error) }

// close is called when upstream is through with the request. It does not return
// if the connection is aborted or dropped, but panics as net/http wants it.
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
