package embedded_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/storage/disk/disktest"
	"snowglobe.test/envtest/storage/embedded"
	"snowglobe.test/internal/pages"
)

const root = "../../.."

// TestInUse starts two stores on one folder. The first goes on, and leaves it to the next.
func TestInUse(t *testing.T) {
	cfg := embedded.Config{DataDir: t.TempDir()}
	first := embedded.New(cfg)
	require.NoError(t, first.Start(t.Context()))
	err := embedded.New(cfg).Start(t.Context())
	require.ErrorContains(t, err, "is in use by this process already", "the second start")
	pages.Troubleshooting(t, root, err.Error())
	require.NoError(t, first.Stop(t.Context()))
	require.NoError(t, first.Start(t.Context()))
	require.NoError(t, first.Stop(t.Context()))
}

// TestNoRoom starts a store whose temporary folder is too small for it, and leaves nothing.
func TestNoRoom(t *testing.T) {
	disktest.Small(t, 16<<20, func(dir string, _ func()) {
		t.Setenv("TMPDIR", dir)
		err := embedded.New(embedded.Config{}).Start(t.Context())
		require.ErrorContains(t, err, "has no room for an etcd", "start")
		pages.Troubleshooting(t, root, err.Error())
		assert.Empty(t, disktest.Left(t, dir), "left")
	})
}
