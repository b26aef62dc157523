package envtest

import (
	"fmt"
	"testing"

	utilrand "k8s.io/apimachinery/pkg/util/rand"

	"snowglobe.test/envtest/sim"
	"snowglobe.test/envtest/trace"
	"snowglobe.test/envtest/virtualtime"
)

// undecided is what a seed leaves to chance in an ordinary build.
const undecided = "not in sim mode: the seed decides the order of operations at the edges, and not what goroutines do in between; to repeat a run, use snowglobe test or snowglobe run --seed"

// plantSeed makes the seed decide everything in this bubble from now on, in sim
// mode; elsewhere the trace says that it does not.
func (cp *ControlPlane) plantSeed() {
	switch {
	case !cp.cfg.seeded || !virtualtime.Virtual():
	case sim.Seed(cp.cfg.seed):
		utilrand.Seed(int64(cp.cfg.seed)) // the wall clock has seeded it
	default:
		cp.undecided = true
		cp.recorder.Record(trace.Note{Text: undecided})
	}
}

// withUndecided adds to an error what the seed has not decided.
func (cp *ControlPlane) withUndecided(err error) error {
	if err == nil || !cp.undecided {
		return err
	}
	return fmt.Errorf("%w (%s)", err, undecided)
}

// logUndecided is withUndecided for a test that has failed.
func (cp *ControlPlane) logUndecided(t testing.TB) {
	if t.Failed() && cp.undecided {
		t.Log(undecided)
	}
}
