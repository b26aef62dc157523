package envtest

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	utilrand "k8s.io/apimachinery/pkg/util/rand"

	"snowglobe.test/envtest/chain"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/sim"
	"snowglobe.test/envtest/trace"
)

// undecided is what a seed leaves to chance in an ordinary build.
const undecided = "not in sim mode: the seed decides the order of operations at the edges, and not what goroutines do in between; to repeat a run, use snowglobe test or snowglobe run --seed"

// applySeed makes the seed decide everything in this bubble from now on, in sim
// mode; elsewhere the trace says that it does not.
func (cp *ControlPlane) applySeed() {
	switch {
	case !cp.cfg.seeded || !cp.virtual:
	case sim.Seed(cp.cfg.seed):
		utilrand.Seed(int64(cp.cfg.seed)) // the wall clock has seeded it
	default:
		cp.undecided = true
		cp.recorder.Record(trace.Note{Text: undecided})
	}
}

// withUndecided adds to an error what the seed has not decided, if another run may not have
// it.
func (cp *ControlPlane) withUndecided(err error) error {
	if err == nil || mistaken(err) || !cp.undecided || !cp.begun {
		return err
	}
	return fmt.Errorf("%w (%s)", err, undecided)
}

// mistaken reports whether an error is about an option, which each run has.
func mistaken(err error) bool {
	_, rule := errors.AsType[*fault.MistakeError](err)
	_, flags := errors.AsType[*chain.FlagsError](err)
	return rule || flags
}

// takeGivenSeed takes the seed of "snowglobe test --seed", in a test.
func (c *config) takeGivenSeed() {
	if !testing.Testing() {
		return
	}
	seed, given, err := sim.GivenSeed()
	if given {
		c.seed, c.seeded = seed, true
	}
	c.errs = append(c.errs, err)
}

// toldSeeds are the seeds of this process that tellSeed has told of.
var toldSeeds sync.Map

// tellSeed says on standard error, once for each seed, how to repeat what tests do under it. A
// panic and "go test -timeout" end a process before anybody could say so, and whoever calls
// Launch or SimulateContext in a test fails it without us.
func (cp *ControlPlane) tellSeed() {
	if !cp.cfg.seeded || !testing.Testing() || !flag.Parsed() { // a test binary that is a program parses other flags
		return
	}
	if _, told := toldSeeds.LoadOrStore(cp.cfg.seed, true); !told {
		fmt.Fprintf(os.Stderr, "snowglobe: this process runs the seed %d: %s\n", cp.cfg.seed, cp.repeat(selected()))
	}
}

// logSeed says of a test that has failed which seed it had, what that has decided, and how
// to repeat it.
func (cp *ControlPlane) logSeed(t testing.TB) {
	t.Helper()
	if !t.Failed() || !cp.cfg.seeded {
		return
	}
	decides := "it decides the whole run; to repeat it"
	switch {
	case cp.undecided:
		decides = "it decides the order of operations at the edges, and not what goroutines do in between; in sim mode it decides the whole run"
	case !cp.virtual:
		decides = "in real time it decides which operations a rule with a probability hits, and no more; to run the test with it"
	}
	t.Logf("the seed is %d: %s: %s", cp.cfg.seed, decides, cp.repeat(cp.pattern(t)))
}

// repeat is the command that runs the tests of a pattern as this process does.
func (cp *ControlPlane) repeat(pattern string) string {
	return sim.Repeat(cp.cfg.seed, sim.GivenSearch(), pattern, importPath())
}

// pattern selects the test. What has run before in the process counts too, so it selects all
// that this process runs unless nothing has.
func (cp *ControlPlane) pattern(t testing.TB) string {
	if cp.number == 1 {
		return sim.OnlyTest(t.Name())
	}
	return selected()
}

// selected is the pattern of the tests that this process runs.
func selected() string { return flag.Lookup("test.run").Value.String() }

// importPath is the path of the package that is tested, or else the current folder.
func importPath() string {
	if info, ok := debug.ReadBuildInfo(); ok && strings.HasSuffix(info.Path, ".test") {
		return strings.TrimSuffix(info.Path, ".test")
	}
	return "."
}
