package bench

import (
	"context"
	"fmt"
	"os"
	"testing"
)

// TestMain lets Startup execute the test binary as its child.
func TestMain(m *testing.M) {
	if !StartupRequested() {
		os.Exit(m.Run())
	}
	if err := StartupChild(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
