package embedded_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/storage/embedded"
	"snowglobe.test/internal/pages"
)

// TestStartTooLate names the limit of a start and what changes it.
func TestStartTooLate(t *testing.T) {
	err := embedded.New(embedded.Config{StartTimeout: time.Nanosecond}).Start(t.Context())
	require.ErrorContains(t, err, "not ready within 1ns; StartTimeout of its Config (up and conformance: --start-timeout) gives it longer", "start")
	pages.Troubleshooting(t, root, err.Error())
}
