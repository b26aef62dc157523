package envtest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/sim"
	"snowglobe.test/internal/pages"
	"snowglobe.test/internal/sample"
)

// failureVariable makes TestSeedFailure, in a process of its own, fail.
const failureVariable = "SNOWGLOBE_TEST_FAILURE"

func TestSeedFailure(t *testing.T) {
	if os.Getenv(failureVariable) == "" {
		t.Skip("it is for TestSeedOfFailure to run")
	}
	fail := func(t *testing.T, _ *envtest.ControlPlane) { t.Error("it fails") }
	t.Run("it's the first", func(t *testing.T) { envtest.Simulate(t, fail, envtest.WithSeed(7)) })
	t.Run("second", func(t *testing.T) { envtest.Simulate(t, fail, envtest.WithSeed(8)) })
	t.Run("stuck", func(t *testing.T) {
		envtest.Simulate(t, func(t *testing.T, _ *envtest.ControlPlane) {
			_, _ = os.Stdin.Read(make([]byte, 1)) // which virtual time can't bring
		}, envtest.WithSeed(9))
	})
	t.Run("real", func(t *testing.T) { fail(t, envtest.Start(t, envtest.WithSeed(10))) })
	t.Run("unseeded", func(t *testing.T) { fail(t, envtest.Start(t)) })
	t.Run("start", func(t *testing.T) {
		envtest.Start(t, envtest.WithSeed(11), envtest.WithFlags("--service-cluster-ip-range=x"))
	})
}

// A test that fails says its seed, what that decides, and how to repeat it.
func TestSeedOfFailure(t *testing.T) {
	sample.Long(t)
	t.Parallel() // all of it is in other processes
	decides := "it decides the order of operations at the edges, and not what goroutines do in between; in sim mode it decides the whole run"
	if sim.Enabled() {
		decides = "it decides the whole run; to repeat it"
	}
	const inReal = "in real time it decides which operations a rule with a probability hits, and no more; to run the test with it"
	all := " -run '^TestSeedFailure$' snowglobe.test/envtest\n"
	out := seedFailure(t)
	assert.Contains(t, out, "the seed is 7: "+decides+`: snowglobe test --seed 7 -run '^TestSeedFailure$/^it'\''s_the_first$' snowglobe.test/envtest`+"\n")
	assert.Contains(t, out, "the seed is 8: "+decides+": snowglobe test --seed 8"+all)
	assert.Contains(t, out, "virtual time stands still: goroutine ")
	assert.Contains(t, out, "the seed is 9: "+decides+": snowglobe test --seed 9"+all)
	assert.Contains(t, out, "the seed is 10: "+inReal+": snowglobe test --seed 10"+all)
	assert.NotContains(t, out, "the seed is 0")
	pages.Troubleshooting(t, "..", out)
	assert.Contains(t, out, "the seed is 11: "+inReal+": snowglobe test --seed 11"+all)

	out = seedFailure(t, sim.SeedVariable+"=3") // takes the place of WithSeed
	assert.Contains(t, out, "the seed is 3: "+decides+`: snowglobe test --seed 3 -run '^TestSeedFailure$/^it'\''s_the_first$' snowglobe.test/envtest`+"\n")
	assert.NotRegexp(t, "the seed is [^3]", out)

	assert.Contains(t, seedFailure(t, sim.SeedVariable+"=three"), `start control plane: the environment variable SNOWGLOBE_SEED is "three", and must be a seed`)
}

// A mistake in an option is the same in every run: its error says nothing of what a seed leaves to chance.
func TestUndecided(t *testing.T) {
	const leaves = "(not in sim mode: the seed decides the order of operations at the edges"
	for wrong, option := range map[string]envtest.Option{
		"--nope": envtest.WithFlags("--nope"),
		// Refused when a server boots.
		"service-cluster-": envtest.WithFlags("--service-cluster-ip-range=x"),
		"no-such-ca":       envtest.WithFlags("--client-ca-file=no-such-ca"),
		"no-such-cert":     envtest.WithFlags("--tls-cert-file=no-such-cert", "--tls-private-key-file=no-such-key"),
		"unknown point":    envtest.WithFaults("crash stage/nowhere"),
		"unknown resource": envtest.WithFaults("delay http/get resource=nothing by=1s"), // known only when a server boots
	} {
		refused := envtest.SimulateContext(nil, envtest.WithSeed(7), option)
		require.ErrorContains(t, refused, wrong)
		assert.NotContains(t, refused.Error(), leaves)
	}
	failed := envtest.SimulateContext(func(context.Context, *envtest.ControlPlane) error { return errors.New("it fails") }, envtest.WithSeed(7))
	require.ErrorContains(t, failed, "it fails")
	assert.Equal(t, !sim.Enabled(), strings.Contains(failed.Error(), leaves))
}

// endVariable makes TestSeedEnd, in a process of its own, end it.
const endVariable = "SNOWGLOBE_TEST_END"

// seedEnds are ends of a process that leave a test no time to say anything, or know of none.
var seedEnds = map[string]func(t *testing.T){
	"panic": func(t *testing.T) { // as at the end of -timeout, too
		envtest.Start(t, envtest.WithSeed(7))
		go panic("in a goroutine of the user's")
		select {}
	},
	"program": func(t *testing.T) {
		require.NoError(t, envtest.SimulateContext(func(context.Context, *envtest.ControlPlane) error {
			return errors.New("it fails")
		}, envtest.WithSeed(7)))
	},
}

func TestSeedEnd(t *testing.T) {
	if os.Getenv(endVariable) == "" {
		t.Skip("it is for TestSeedBeforeEnd to run")
	}
	seedEnds[os.Getenv(endVariable)](t)
}

// The seed of a test is told before a panic or -timeout can end the process.
func TestSeedBeforeEnd(t *testing.T) {
	t.Parallel() // all of it is in other processes
	for end, want := range map[string]string{"panic": "panic: in a goroutine of the user's", "program": "it fails"} {
		t.Run(end, func(t *testing.T) {
			out := failing(t, "TestSeedEnd", endVariable+"="+end)
			assert.Contains(t, out, want)
			assert.Contains(t, out, "snowglobe: this process runs the seed 7: snowglobe test --seed 7 -run '^TestSeedEnd$' snowglobe.test/envtest\n")
		})
	}
}

func seedFailure(t *testing.T, environment ...string) string {
	t.Helper()
	return failing(t, "TestSeedFailure", append(environment, failureVariable+"=1")...)
}

// failing runs a test of this binary, which has to fail, in a process of its own.
func failing(t *testing.T, test string, environment ...string) string {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	child := exec.CommandContext(t.Context(), program, "-test.run=^"+test+"$", "-test.failfast=false")
	child.Env = append(os.Environ(), environment...)
	in, err := child.StdinPipe()
	require.NoError(t, err)
	defer func() { _ = in.Close() }()
	out, err := child.CombinedOutput()
	require.Error(t, err)
	return string(out)
}

// A mutex may be held across a request where requests take no time, also under a seed.
func TestMutexAcrossRequest(t *testing.T) {
	if !sim.Enabled() {
		t.Skip("an order of operations can tell who waits for a mutex in sim mode only")
	}
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		var mutex sync.Mutex
		var all sync.WaitGroup
		configMaps := configMapsOf(cp.Config())
		for i := range 5 {
			all.Go(func() {
				mutex.Lock()
				defer mutex.Unlock()
				createAt(t, configMaps, fmt.Sprint("held-", i))
			})
		}
		all.Wait()
		time.Sleep(time.Hour)
	}, envtest.WithSeed(5), envtest.WithoutLatency())
}
