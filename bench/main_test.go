package bench

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
)

// TestMain lets measurements execute the test binary as their child.
func TestMain(m *testing.M) {
	run := Child
	switch {
	case ChildRequested():
	case slices.Equal(os.Args[1:], clientsCommand):
		run = Clients
	default:
		os.Exit(m.Run())
	}
	if err := run(context.Background(), os.Stdin, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
