package cluster_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/storage/cluster"
	"snowglobe.test/envtest/storage/disk/disktest"
	"snowglobe.test/internal/pages"
)

const root = "../../.."

// TestFullDisk starts a cluster on a disk that is too small for it, and fills one under a
// cluster that runs.
func TestFullDisk(t *testing.T) {
	t.Run("start", func(t *testing.T) {
		disktest.Small(t, 200<<20, func(dir string, _ func()) {
			t.Setenv("TMPDIR", dir)
			store, err := cluster.New(cluster.Config{})
			require.NoError(t, err)
			err = store.Start(t.Context())
			require.ErrorContains(t, err, "has no room for an etcd, which needs 384 MB to start", "start")
			pages.Troubleshooting(t, root, err.Error())
			assert.Empty(t, disktest.Left(t, dir), "left")
		})
	})
	t.Run("use", func(t *testing.T) {
		disktest.Small(t, 450<<20, func(dir string, _ func()) {
			t.Setenv("TMPDIR", dir)
			store, err := cluster.New(cluster.Config{})
			require.NoError(t, err)
			require.NoError(t, store.Start(t.Context()))
			client, err := store.Client()
			require.NoError(t, err)
			defer client.Close()
			disktest.Fill(t, dir, 1<<20)
			go func() {
				for t.Context().Err() == nil {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					_, _ = client.Client.Put(ctx, "key", strings.Repeat("v", 1_000_000))
					cancel()
				}
			}()
			select {
			case <-store.Failed():
			case <-time.After(time.Minute):
				t.Fatal("the disk never fills up")
			}
			assert.ErrorContains(t, store.Failure(), "of the etcd cluster: etcd can't write: the disk of", "failure")
			pages.Troubleshooting(t, root, store.Failure().Error())
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			assert.NoError(t, store.Stop(ctx))
			left := disktest.Left(t, dir)
			assert.LessOrEqual(t, len(left), 1, "left: %s", left) // the ballast
		})
	})
}
