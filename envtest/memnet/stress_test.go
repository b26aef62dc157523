package memnet

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestStress lets clients leave at any moment and handlers end in any way: no
// promised byte is lost, and nothing is left running.
func TestStress(t *testing.T) {
	const clients, requests = 16, 60
	var running atomic.Int64
	tr := &Transport{BufferBytes: 2000, OnPanic: func(any, []byte) {}}
	tr.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		running.Add(1)
		defer running.Add(-1)
		dice := rand.New(rand.NewPCG(uint64(r.ContentLength), 1))
		io.CopyN(io.Discard, r.Body, dice.Int64N(2000))
		c := http.NewResponseController(w)
		for range dice.IntN(20) {
			if _, err := w.Write(make([]byte, dice.IntN(3000))); err != nil {
				return
			}
			switch dice.IntN(30) {
			case 0:
				panic("handler")
			case 1:
				runtime.Goexit()
			case 2:
				<-r.Context().Done()
			case 3:
				c.SetWriteDeadline(time.Now().Add(time.Millisecond))
			default:
				c.Flush()
			}
		}
	})
	var all sync.WaitGroup
	for client := range clients {
		all.Go(func() {
			dice := rand.New(rand.NewPCG(uint64(client), 2))
			for range requests {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(dice.IntN(3000))*time.Microsecond)
				pr, pw := io.Pipe()
				go func() {
					pw.Write(make([]byte, 1000))
					pw.Close()
				}()
				req, _ := http.NewRequestWithContext(ctx, "POST", "https://cluster/", pr)
				req.ContentLength = 1000
				if resp, err := tr.RoundTrip(req); err == nil {
					io.CopyN(io.Discard, resp.Body, dice.Int64N(30_000))
					if dice.IntN(2) == 0 {
						io.Copy(io.Discard, resp.Body)
					}
					resp.Body.Close()
				}
				cancel()
			}
		})
	}
	all.Wait()
	assert.NoError(t, tr.Wait(t.Context()))
	assert.Equal(t, int64(0), running.Load())
	assert.Zero(t, tr.running.Len())
}

// runtime.Goexit is how t.FailNow leaves a handler that is part of a test.
func TestHandlerGoexit(t *testing.T) {
	bubble(t, func(http.ResponseWriter, *http.Request) { runtime.Goexit() }, func(t *testing.T, tr *Transport) {
		tr.OnPanic = func(v any, _ []byte) { t.Errorf("reported %v", v) }
		req, _ := http.NewRequestWithContext(t.Context(), "GET", "https://cluster/", nil)
		_, err := tr.RoundTrip(req)
		assert.True(t, err == io.ErrUnexpectedEOF, "error %v, want unexpected EOF", err)
	})
}
