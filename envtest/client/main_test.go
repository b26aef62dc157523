package client

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"context"

	"snowglobe.test/envtest/client/server"
)

// TestMain lets the test binary be the program that tests start, as a small one whose
// server soon ends.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "serve" {
		os.Exit(serve(os.Args[3]))
	}
	os.Exit(m.Run())
}

const linger = 300 * time.Millisecond

func serve(socket string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("serving")
	if err := server.Serve(ctx, listener, server.Config{Linger: linger, Idle: 2}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
