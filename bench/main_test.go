package bench

import (
	"context"
	"fmt"
	"os"
	"testing"
)

// TestMain lets Startup execute the test binary again, as it does a command.
func TestMain(m *testing.M) {
	if !StartupRequested() {
		os.Exit(m.Run())
	}
	if err := StartupChild(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
