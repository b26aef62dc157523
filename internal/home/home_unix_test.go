//go:build unix

package home

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// hangVariable makes TestHangs hang.
const hangVariable = "SNOWGLOBE_TEST_HOME_HANGS"

func TestHangs(t *testing.T) {
	file := os.Getenv(hangVariable)
	if file == "" {
		t.Skip("it is for TestSignals to run")
	}
	require.NoError(t, os.WriteFile(file, []byte(os.Getenv("HOME")), 0o600))
	time.Sleep(time.Minute)
}

// TestSignals ends tests as people and the go command do: it is the tests that are told, and
// nothing is left.
func TestSignals(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			program, err := os.Executable()
			require.NoError(t, err)
			file := filepath.Join(t.TempDir(), "runs")
			again := exec.CommandContext(t.Context(), program, "-test.run=^TestHangs$", "-test.v")
			again.Env = append(os.Environ(), variable+"=", hangVariable+"="+file)
			var out strings.Builder
			again.Stdout, again.Stderr = &out, &out
			require.NoError(t, again.Start())
			var home []byte
			for len(home) == 0 {
				home, _ = os.ReadFile(file)
				time.Sleep(5 * time.Millisecond)
			}
			require.NoError(t, again.Process.Signal(signal))
			require.Error(t, again.Wait())
			if signal == syscall.SIGQUIT {
				assert.Contains(t, out.String(), "home.TestHangs(")
			}
			assert.NoDirExists(t, string(home))
		})
	}
}
