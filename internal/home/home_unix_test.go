//go:build unix

package home

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// hangVariable makes TestHangs hang.
const hangVariable = "SNOWGLOBE_TEST_HOME_HANGS"

func TestHangs(t *testing.T) {
	if os.Getenv(hangVariable) == "" {
		t.Skip("it is for TestSignals to run")
	}
	synctest.Test(t, func(*testing.T) {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			synctest.Wait() // the stack of a goroutine that runs may not be told
			fmt.Println("hangs in:" + os.Getenv("HOME"))
			_, _ = io.Copy(io.Discard, os.Stdin) // until nobody holds the other end
		}()
		<-ended
	})
}

// TestSignals ends tests as people and the go command do: it is the tests that are told, and
// nothing is left.
func TestSignals(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			program, err := os.Executable()
			require.NoError(t, err)
			again := exec.CommandContext(t.Context(), program, "-test.run=^TestHangs$", "-test.v")
			again.Env = append(os.Environ(), variable+"=", hangVariable+"=yes")
			in, err := again.StdinPipe()
			require.NoError(t, err)
			defer func() { _ = in.Close() }()
			out, err := again.StdoutPipe()
			require.NoError(t, err)
			again.Stderr = again.Stdout
			require.NoError(t, again.Start())
			lines, home := bufio.NewReader(out), ""
			for hangs := false; !hangs; {
				line, err := lines.ReadString('\n')
				require.NoError(t, err, "it ended before it hung")
				home, hangs = strings.CutPrefix(strings.TrimSpace(line), "hangs in:")
			}
			require.NoError(t, again.Process.Signal(signal))
			rest, err := io.ReadAll(lines)
			require.NoError(t, err)
			require.Error(t, again.Wait())
			if signal == syscall.SIGQUIT {
				assert.Contains(t, string(rest), "home.TestHangs(")
			}
			assert.NoDirExists(t, home)
		})
	}
}
