package sim_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"snowglobe.test/envtest/sim"
	"snowglobe.test/internal/sample"
)

// original starts the program of testdata, which makes copies of itself, and returns the file that they
// write to.
func original(t *testing.T, program string, args ...string) (*sim.Original, string) {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, out.Close()) })
	o, err := sim.NewOriginal(t.Context(), sim.CPUs()[0], func(ctx context.Context) *exec.Cmd {
		command := exec.CommandContext(ctx, program, args...)
		command.Stdout, command.Stderr = out, os.Stderr
		return command
	})
	require.NoError(t, err)
	return o, out.Name()
}

// TestCopies has copies of a process do what a process of its own does under the same seed, in any order
// and also when the process is disturbed.
func TestCopies(t *testing.T) {
	program := decided(t)
	t.Setenv("TMPDIR", t.TempDir())
	workloads := []string{
		"selects", "goroutines", "long", "maps", "timers", "bytes", "files", "signals", "garbage", "syscalls", "outside",
	}
	if !sample.All() {
		workloads = []string{"goroutines", "timers", "signals", "outside"}
	}
	for _, workload := range workloads {
		t.Run(workload, func(t *testing.T) {
			for _, disturbed := range [][]string{nil, {"disturbed"}} {
				o, out := original(t, program, append([]string{workload, "copies"}, disturbed...)...)
				written := 0
				for _, seed := range []int{3, 1, 2, 1} {
					require.NoError(t, o.Copy(t.Context(), uint64(seed)))
					text, err := os.ReadFile(out)
					require.NoError(t, err)
					want, err := run(t.Context(), program, workload, seed, false)
					require.NoError(t, err)
					require.Equal(t, want, string(text[written:]), "seed %d", seed)
					written = len(text)
				}
				require.NoError(t, o.Close())
			}
		})
	}
}

// TestCopiesTakeMemory has a copy write to memory that the next one then need not ask for page by page.
func TestCopiesTakeMemory(t *testing.T) {
	if _, _, unknown := unix.Syscall(unix.SYS_MADVISE, 0, 0, unix.MADV_POPULATE_WRITE); unknown != 0 {
		t.Skip("Linux before 5.14 can't copy memory ahead")
	}
	o, out := original(t, decided(t), "memory", "copies")
	for seed := range 3 {
		require.NoError(t, o.Copy(t.Context(), uint64(seed)))
	}
	require.NoError(t, o.Close())
	text, err := os.ReadFile(out)
	require.NoError(t, err)
	var first, second, third int
	_, err = fmt.Sscan(string(text), &first, &second, &third)
	require.NoError(t, err)
	assert.Greater(t, first, 32<<20/os.Getpagesize()/2)
	assert.Less(t, max(second, third), first/10)
}

// TestCopyEnds has copies end badly: the process goes on, and the next copy is well.
func TestCopyEnds(t *testing.T) {
	program := decided(t)
	o, _ := original(t, program, "ends", "copies")
	var end *sim.EndError
	require.ErrorAs(t, o.Copy(t.Context(), 7), &end)
	assert.Equal(t, sim.EndError{Code: 7}, *end)
	require.ErrorAs(t, o.Copy(t.Context(), 1_009), &end)
	assert.Equal(t, sim.EndError{Signal: syscall.SIGKILL}, *end)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorAs(t, o.Copy(ctx, 2_000), &end, "it would never end")
	assert.Equal(t, sim.EndError{Signal: syscall.SIGKILL}, *end)
	require.NoError(t, o.Copy(t.Context(), 0))
	require.NoError(t, o.Close())
}

// TestNoOriginal asks a process for copies that ends without making any.
func TestNoOriginal(t *testing.T) {
	program := decided(t)
	o, err := sim.NewOriginal(t.Context(), sim.CPUs()[0], func(ctx context.Context) *exec.Cmd {
		return exec.CommandContext(ctx, program, "selects", "1") // it makes no copies
	})
	require.NoError(t, err)
	assert.ErrorContains(t, o.Copy(t.Context(), 1), "the process that makes copies has ended")
	require.NoError(t, o.Close())
}
