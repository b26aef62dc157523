package memnet

import (
	"io"
	"maps"
	"net/http"
)

// responseBody is the client's side of an exchange.
type responseBody struct {
	x    *exchange
	resp *http.Response
	eof  bool // guarded by x.mu: the end has been read, trailers are in place
}

// Read waits for flushed bytes. At the end it fills in resp.Trailer and
// returns io.EOF; it returns io.ErrUnexpectedEOF when the handler failed, and
// the context's error when the request was cancelled.
func (b *responseBody) Read(p []byte) (int, error) {
	x := b.x
	x.mu.Lock()
	defer x.mu.Unlock()
	for {
		if !b.eof && x.clientErr != http.ErrBodyReadAfterClose {
			if err := x.clientCtx.Err(); err != nil {
				return 0, err
			}
		}
		n := x.take(p)
		if x.ready == 0 && len(x.rest) == 0 && x.clientErr == io.EOF {
			b.end()
			return n, io.EOF
		}
		if n > 0 || len(p) == 0 {
			return n, nil
		}
		if x.clientErr != nil {
			return 0, x.clientErr
		}
		x.readable.Wait()
	}
}

// Close ends the exchange: a handler still writing finds that its client has gone.
func (b *responseBody) Close() error {
	b.x.sever(http.ErrBodyReadAfterClose, errClientGone, true)
	return nil
}

// end fills in the trailers once all bytes have been read. Called with x.mu held.
func (b *responseBody) end() {
	if b.eof {
		return
	}
	b.eof = true
	if len(b.x.trailer) == 0 {
		return
	}
	if b.resp.Trailer == nil {
		b.resp.Trailer = http.Header{}
	}
	maps.Copy(b.resp.Trailer, b.x.trailer)
}

// take moves flushed bytes to p. Called with mu held.
func (x *exchange) take(p []byte) int {
	n := x.ring.read(p[:min(len(p), x.ready)])
	x.ready -= n
	if len(x.rest) == 0 {
		return n
	}
	// A writer is blocked, so all of the ring was ready.
	if x.ready == 0 {
		m := copy(p[n:], x.rest)
		x.rest = x.rest[m:]
		n += m
	}
	if len(x.rest) <= x.ring.free() {
		x.ring.write(x.rest)
		x.ready = x.ring.n
		x.rest = nil
		x.writable.Broadcast()
	}
	return n
}
