//go:build !snowglobesim

package virtualtime_test

import (
	"bytes"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/virtualtime"
	"snowglobe.test/internal/pages"
	"snowglobe.test/internal/sample"
)

// spins are what a goroutine may do that keeps virtual time from moving. None but the last
// ends.
var spins = map[string]func(t *testing.T){
	"clock": func(*testing.T) { lookAtClock() },
	"yield": func(*testing.T) { yieldForEver() },
	"compute": func(t *testing.T) {
		sum := uint64(0)
		for j := range uint64(3_000_000_000) {
			sum = sum*31 + j
		}
		t.Log("computed", sum)
	},
}

func lookAtClock() {
	for begun := time.Now(); time.Since(begun) < time.Second; {
	}
}

func yieldForEver() {
	for begun := time.Now(); time.Since(begun) < time.Second; {
		runtime.Gosched()
	}
}

const spinVariable = "SNOWGLOBE_TEST_SPIN"

// TestSpin is the process of TestSpins.
func TestSpin(t *testing.T) {
	spin := spins[os.Getenv(spinVariable)]
	if spin == nil {
		t.Skip("it is for TestSpins to run")
	}
	require.NoError(t, virtualtime.Watched(250*time.Millisecond, os.Stderr, func(begun func()) {
		synctest.Test(t, func(t *testing.T) {
			begun()
			go time.Sleep(time.Minute)
			spin(t)
		})
	}))
}

// TestSpins has a process for each: who spins is named, and the timeout of go test ends it in time. In sim mode, where
// it has the only processor, the runtime does that: see TestSpins of package sim.
func TestSpins(t *testing.T) {
	for name, where := range map[string]string{"clock": "virtualtime_test.lookAtClock()", "yield": "virtualtime_test.yieldForEver()"} {
		t.Run(name, func(t *testing.T) {
			if name != "clock" {
				sample.Long(t)
			}
			out, took := spinning(t, name, "4s")
			assert.Regexp(t, `snowglobe: virtual time has stood still for 1[.\d]*s on the wall, because this goroutine runs `, out)
			assert.Contains(t, out, where)
			assert.Contains(t, out, "panic: test timed out after 4s")
			assert.Less(t, took, 30*time.Second)
		})
	}
	t.Run("compute", func(t *testing.T) {
		out, _ := spinning(t, "compute", "5m")
		assert.Contains(t, out, "snowglobe: virtual time has stood still for 1")
		assert.Contains(t, out, "computed")
	})
}

func spinning(t *testing.T, name, timeout string) (out string, took time.Duration) {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	child := exec.CommandContext(t.Context(), program, "-test.run=^TestSpin$", "-test.v", "-test.timeout="+timeout)
	child.Env = append(os.Environ(), spinVariable+"="+name)
	begun := time.Now()
	text, _ := child.CombinedOutput() // the text tells how it ended
	return string(text), time.Since(begun)
}

// Who runs for long while time stands still is named, with its stack, and goes on.
func TestWatchedSpins(t *testing.T) {
	var warnings told
	require.NoError(t, virtualtime.Watched(100*time.Millisecond, &warnings, func(begun func()) {
		synctest.Test(t, func(*testing.T) {
			begun()
			time.Sleep(time.Minute)
			waitForTime(&warnings.once)
		})
	}))
	assert.Regexp(t, `^snowglobe: virtual time has stood still for [45]\d\dms on the wall, because this goroutine runs `+
		`.*\n\ngoroutine \d+ \[`, warnings.String())
	assert.Contains(t, warnings.String(), "virtualtime_test.waitForTime(")
	assert.Equal(t, 1, strings.Count(warnings.String(), "snowglobe:"))
	pages.Troubleshooting(t, "../..", warnings.String())
}

// told remembers that it has been written to.
type told struct {
	bytes.Buffer
	once atomic.Bool
}

func (w *told) Write(text []byte) (int, error) {
	defer w.once.Store(true)
	return w.Buffer.Write(text)
}

// waitForTime waits for virtual time to pass, which it keeps from passing.
func waitForTime(enough *atomic.Bool) {
	for begun := time.Now(); time.Since(begun) < time.Second && !enough.Load(); {
	}
}
