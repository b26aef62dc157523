package sim_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/sim"
	"snowglobe.test/internal/hostile"
	"snowglobe.test/internal/sample"
)

// ownCache gives sim mode a cache of the test's own, but not the go command.
func ownCache(t *testing.T) {
	t.Helper()
	cache, err := exec.Command("go", "env", "GOCACHE").Output() // which depends on XDG_CACHE_HOME
	require.NoError(t, err)
	t.Setenv("GOCACHE", strings.TrimSpace(string(cache)))
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
}

// decided builds the program of testdata in sim mode.
func decided(t *testing.T) string {
	t.Helper()
	ownCache(t)
	program, err := sim.Program(t.Context(), ".", "./testdata/decided", os.Stderr)
	require.NoError(t, err)
	return program
}

// run runs the program: quietly, or with a hostile environment, which is longer, so that the
// heap begins elsewhere, and with goroutines outside the bubble.
func run(ctx context.Context, program, workload string, seed int, disturbed bool) (string, error) {
	command := exec.CommandContext(ctx, program, workload, fmt.Sprint(seed))
	if disturbed {
		environment, err := hostile.Environment(os.TempDir())
		if err != nil {
			return "", err
		}
		command.Args = append(command.Args, "disturbed")
		command.Env = append(append(os.Environ(), environment...), "TMPDIR="+os.TempDir())
	}
	command.Stderr = os.Stderr
	out, err := command.Output()
	return string(out), err
}

// TestSeed runs each seed quietly and disturbed: what it decides is the same, and
// another seed decides otherwise.
func TestSeed(t *testing.T) {
	seeds, again := 2, 2
	if sample.All() {
		seeds, again = 4, 3
	}
	program := decided(t)
	t.Setenv("TMPDIR", t.TempDir()) // for what a workload leaves there
	for _, workload := range []string{"selects", "goroutines", "long", "maps", "contexts", "timers", "waits", "bytes", "files", "signals", "garbage"} {
		t.Run(workload, func(t *testing.T) {
			different := map[string]bool{}
			for seed := range seeds {
				first, err := run(t.Context(), program, workload, seed, false)
				require.NoError(t, err)
				require.NotEmpty(t, first)
				different[first] = true
				for range again {
					second, err := run(t.Context(), program, workload, seed, true)
					require.NoError(t, err)
					require.Equal(t, first, second, "seed %d", seed)
				}
			}
			if workload != "garbage" { // in which only its moments count
				assert.Len(t, different, seeds)
			}
		})
	}
}

// TestWorld asks what a bubble sees of a machine that is another user's.
func TestWorld(t *testing.T) {
	program := decided(t)
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("SNOWGLOBE_HERE", "ours")
	t.Setenv("SNOWGLOBE_TEST_LONG", "") // a hostile environment has it
	for name, test := range map[string]struct {
		given string
		want  string
	}{
		"nothing": {"", `snowglobe in /nonexistent on snowglobe <nil>, by <nil>, at 1970-01-01T00:00:00Z, /nonexistent
1970-01-01T12:45:00+12:45 <nil>
HOME=/nonexistent LANG=C SNOWGLOBE_ENV= SNOWGLOBE_HERE=ours TZ=UTC USER=snowglobe
KUBECONFIG false, then mine, mine; LANG then false
`},
		"on purpose": {"TZ,HTTPS_PROXY", `snowglobe in /nonexistent on snowglobe <nil>, by socks5://stranger:secret@127.0.0.1:9, at 1970-01-01T12:45:00+12:45, /nonexistent
1970-01-01T12:45:00+12:45 <nil>
HOME=/nonexistent HTTPS_PROXY=socks5://stranger:secret@127.0.0.1:9 LANG=C SNOWGLOBE_ENV=TZ,HTTPS_PROXY SNOWGLOBE_HERE=ours TZ=Pacific/Chatham USER=snowglobe
KUBECONFIG false, then mine, mine; LANG then false
`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("SNOWGLOBE_ENV", test.given)
			out, err := run(t.Context(), program, "world", 1, true)
			require.NoError(t, err)
			assert.Equal(t, test.want, out)
		})
	}
}

// TestPlantedRace finds a race by seeds, and repeats it by its seed.
func TestPlantedRace(t *testing.T) {
	program := decided(t)
	lost := -1
	for seed := range 50 {
		out, err := run(t.Context(), program, "race", seed, false)
		require.NoError(t, err)
		if out == "balance 1\n" {
			lost = seed
			break
		}
	}
	require.NotEqual(t, -1, lost, "no seed loses an update")
	for range 50 {
		out, err := run(t.Context(), program, "race", lost, true)
		require.NoError(t, err)
		require.Equal(t, "balance 1\n", out)
	}
}

// TestOrdinaryBuild is this test binary.
func TestOrdinaryBuild(t *testing.T) {
	assert.False(t, sim.Enabled())
	assert.False(t, sim.Seed(1))
	assert.False(t, sim.Alone())
	sim.Yield()
}

func TestTest(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for _, test := range []struct{ flags, args, want string }{
		{"", "./...", "-tags=snowglobesim -count=1 -vet=off ./..."},
		{"", "-tags a,b -run X", "-tags=a,b,snowglobesim -count=1 -vet=off -run X"},
		{"", "-tags=a . -args -tags=b", "-tags=a,snowglobesim -count=1 -vet=off . -args -tags=b"},
		{"-v -tags=c", ".", "-tags=c,snowglobesim -count=1 -vet=off ."},
		{"-tags=c", "--tags d .", "-tags=d,snowglobesim -count=1 -vet=off ."},
	} {
		t.Setenv("GOFLAGS", test.flags)
		command, err := sim.Test(t.Context(), strings.Fields(test.args)...)
		require.NoError(t, err)
		assert.Equal(t, "go", filepath.Base(command.Args[0]))
		require.Equal(t, "test", command.Args[1])
		overlay, ok := strings.CutPrefix(command.Args[2], "-overlay=")
		require.True(t, ok)
		assert.FileExists(t, overlay)
		args := strings.Join(command.Args[3:], " ")
		assert.Equal(t, test.want, strings.Replace(args, ",kustomize_disable_go_plugin_support", "", 1))
		assert.Contains(t, args, ",kustomize_disable_go_plugin_support")
	}
	_, err := sim.Test(t.Context(), "-v", "-overlay=x.json")
	assert.ErrorContains(t, err, "argument 2: sim mode is an overlay itself")
}

// TestAnotherGo is a Go whose source the edits do not fit.
func TestAnotherGo(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "src", "runtime"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "src", "runtime", "select.go"), []byte("package runtime\n"), 0o644))
	t.Setenv("GOROOT", root)
	_, err := sim.Test(t.Context())
	assert.ErrorContains(t, err, "sim mode does not know the source of go")
	assert.ErrorContains(t, err, "runtime/select.go: there is 0 times, not 1, what select-case.diff has at line ")
	assert.ErrorContains(t, err, "cheaprandn(uint32(norder + 1))")
}
