package chain

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"

	"snowglobe.test/envtest/fault"
)

// fate is what rules have made of the connection of a request: nothing, at
// first. From the moment it is bad the client is sent nothing more, not even by
// upstream's filters, which go on as if all were well.
type fate struct {
	muted atomic.Bool
	mu    sync.Mutex
	cause error // with which the connection breaks
	lost  bool  // the client is to wait until it gives up
}

// breakOff makes the connection break with an error of the network.
func (f *fate) breakOff(cause error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.muted.CompareAndSwap(false, true) {
		f.cause = cause
	}
}

// lose makes the client wait for an answer that never comes.
func (f *fate) lose() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.muted.CompareAndSwap(false, true) {
		f.lost = true
	}
}

func (f *fate) is() (cause error, lost bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cause, f.lost
}

var errDropped = errors.New("the request was dropped")

// err is how the request broke, nil if it did not.
func (f *fate) err() error {
	cause, lost := f.is()
	if lost {
		return errDropped
	}
	return cause
}

// aborter is the writer of a client in the process, which can be told how its
// connection broke. Others see a stream that is reset.
type aborter interface{ Abort(cause error) }

// meet ends a request whose connection is to break, or is lost, when upstream is
// through with it. It does not return then.
func (f *fate) meet(client context.Context, edge *fault.Injector, w http.ResponseWriter) {
	if !f.muted.Load() {
		return
	}
	cause, lost := f.is()
	if lost {
		_ = edge.Lost(client)
	} else if a, ok := w.(aborter); ok {
		a.Abort(cause)
	}
	panic(http.ErrAbortHandler)
}
