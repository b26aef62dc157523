package diskerr_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"snowglobe.test/internal/diskerr"
	"snowglobe.test/internal/pages"
)

// TestReal explains errors that the system has made.
func TestReal(t *testing.T) {
	for name, c := range map[string]struct {
		write func(t *testing.T, folder string) error
		says  string
	}{
		"limit":   {overLimit, "may not grow any further: raise the limit on file sizes (ulimit -f)"},
		"others'": {asNobody, "no permission to write to "},
		"failing": {nowhere, " fails: write /proc/self/mem: input/output error"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			err := c.write(t, folder)
			require.Error(t, err)
			explained, ok := diskerr.Explain(folder, err)
			require.True(t, ok, "%v", err)
			assert.ErrorContains(t, explained, c.says)
			pages.Troubleshooting(t, "../..", explained.Error())
		})
	}
}

// overLimit writes a file that is larger than files may be.
func overLimit(t *testing.T, folder string) error {
	t.Helper()
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &limit))
	defer func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &limit)) }()
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 100, Max: limit.Max}))
	return os.WriteFile(filepath.Join(folder, "large"), make([]byte, 101), 0o600)
}

// asNobody writes where only others may, even if these tests are root's.
func asNobody(t *testing.T, folder string) error {
	t.Helper()
	require.NoError(t, os.Chmod(folder, 0o500))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, err := unix.SetfsuidRetUid(65534)
	require.NoError(t, err)
	defer func() { _ = unix.Setfsuid(before) }()
	return os.WriteFile(filepath.Join(folder, "new"), nil, 0o600)
}

// nowhere writes to where nothing is.
func nowhere(t *testing.T, _ string) error {
	t.Helper()
	return os.WriteFile("/proc/self/mem", []byte("snow"), 0o600)
}
