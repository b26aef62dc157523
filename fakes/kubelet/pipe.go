package kubelet

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// pipe runs a function with a connection whose bytes come from a stream and go to it.
// It returns when the function has.
//
// The connection is made of pipes because servers need deadlines, which a stream does not
// have, and because its two directions end separately. The goroutine that reads the stream
// goes on until the stream ends; readers waits for it.
func pipe(ctx context.Context, stream io.ReadWriter, readers *sync.WaitGroup, handle func(context.Context, net.Conn) error) error {
	in, inEnd := net.Pipe()
	out, outEnd := net.Pipe()
	conn := &forwarded{in, out}
	readers.Go(func() {
		_, _ = io.Copy(inEnd, stream)
		_ = inEnd.Close()
	})
	var sent sync.WaitGroup
	var sending error
	sent.Go(func() {
		_, sending = io.Copy(stream, outEnd)
		_ = outEnd.Close()
	})
	defer sent.Wait()
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	err := handle(ctx, conn)
	_ = conn.Close()
	sent.Wait()
	return errors.Join(err, sending)
}

// forwarded is a connection made of two pipes: it reads from Conn and writes to out.
type forwarded struct {
	net.Conn
	out net.Conn
}

func (f *forwarded) Write(p []byte) (int, error) { return f.out.Write(p) }

// CloseWrite ends what the client reads, and lets the client go on writing.
func (f *forwarded) CloseWrite() error { return f.out.Close() }

func (f *forwarded) Close() error { return errors.Join(f.Conn.Close(), f.out.Close()) }

func (f *forwarded) SetDeadline(t time.Time) error {
	return errors.Join(f.Conn.SetDeadline(t), f.out.SetDeadline(t))
}

func (f *forwarded) SetWriteDeadline(t time.Time) error { return f.out.SetWriteDeadline(t) }
