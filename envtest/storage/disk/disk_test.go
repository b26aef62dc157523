package disk_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/server/v3/storage/wal"

	"snowglobe.test/envtest/storage/disk"
	"snowglobe.test/envtest/storage/disk/disktest"
	"snowglobe.test/internal/pages"
)

func TestNoRoom(t *testing.T) {
	disktest.Small(t, 100<<20, func(dir string, _ func()) {
		err := disk.Check(dir, 1)
		require.Error(t, err)
		assert.Contains(t, err.Error(), "has no room for an etcd, which needs 128 MB to start (104 MB are free)")
		pages.Troubleshooting(t, root, err.Error())

		// One that has its first segment needs only the next.
		log := filepath.Join(dir, "member", "wal")
		require.NoError(t, os.MkdirAll(log, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(log, "0000000000000000-0000000000000000.wal"), nil, 0o600))
		require.True(t, wal.Exist(log))
		require.NoError(t, disk.Check(dir, 1))
		left, err := filepath.Glob(filepath.Join(dir, "space-*"))
		require.NoError(t, err)
		assert.Empty(t, left)
	})
}

func TestReadOnly(t *testing.T) {
	disktest.Small(t, 1<<20, func(dir string, readOnly func()) {
		readOnly()
		for _, folder := range []string{dir, filepath.Join(dir, "new")} {
			lock, err := disk.Use(folder)
			require.Error(t, err)
			lock.Release()
			assert.ErrorContains(t, err, "is read-only: mount it for writing")
			pages.Troubleshooting(t, root, err.Error())
		}
	})
}
