package envtest_test

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/storage/disk/disktest"
)

// TestPKIAtOnce starts several on an empty folder: all have the same authority.
func TestPKIAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	var loaded [8][]byte
	var work sync.WaitGroup
	for i := range loaded {
		work.Go(func() {
			var err error
			loaded[i], err = envtest.LoadPKI(t.Context(), dir)
			assert.NoError(t, err)
		})
	}
	work.Wait()
	kept, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	require.NoError(t, err)
	for i, cert := range loaded {
		assert.True(t, bytes.Equal(cert, kept), "start %d has another authority than the folder", i)
	}
}

// TestPKIFullDisk has no room for the files, which are then not there by halves.
func TestPKIFullDisk(t *testing.T) {
	disktest.Small(t, 1<<20, func(dir string, _ func()) {
		free := disktest.Fill(t, dir, 4096) // for one of two files
		_, err := envtest.LoadPKI(t.Context(), dir)
		require.Error(t, err, "the disk was not full")
		free()
		_, err = envtest.LoadPKI(t.Context(), dir)
		assert.NoError(t, err)
	})
}
