package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// errInterrupted is the cause of a context that Ctrl-C has cancelled.
var errInterrupted = errors.New("interrupted")

// withSignals returns a context that ends with errInterrupted on the first signal to
// terminate; the second one ends the process at once. The returned function stops
// handling signals.
func withSignals(parent context.Context, stderr io.Writer) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	asked := make(chan os.Signal, 2)
	signal.Notify(asked, os.Interrupt, syscall.SIGTERM)
	var handling sync.WaitGroup
	handling.Go(func() {
		for range asked {
			if ctx.Err() != nil {
				fmt.Fprintln(stderr, "snowglobe: ended at once")
				os.Exit(exitInterrupted)
			}
			cancel(errInterrupted)
		}
	})
	return ctx, func() {
		signal.Stop(asked)
		close(asked)
		handling.Wait()
		cancel(nil)
	}
}
