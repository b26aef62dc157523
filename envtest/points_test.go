package envtest_test

import (
	"strings"
	"testing"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/storage/embedded"
)

// pointTest shows operations at a point passing, held, failed and lost, and what
// the client saw. It waits for what happens by gates, never by time, since it
// runs in virtual time and in real time.
type pointTest struct {
	show func(t *testing.T, cp *envtest.ControlPlane)
	opts []envtest.Option
	// onEtcd is set for points that the kind of store could make a difference to.
	onEtcd bool
	// realTime is set for what needs sockets.
	realTime bool
}

// pointTests has a test for each entry of the catalogue, by pointID. The files
// points_*_test.go fill it.
var pointTests = map[string]pointTest{}

// pointID names an entry of the catalogue: its point, what tells it from others
// of that point, and nothing else.
func pointID(k fault.PointKind) string {
	words := []string{k.Name}
	if k.Phases != nil {
		words = append(words, string(k.Phases[0]))
	}
	return strings.Join(append(words, k.Verbs[:min(1, len(k.Verbs))]...), " ")
}

// TestPoints shows every point at work.
func TestPoints(t *testing.T) {
	for _, kind := range fault.Points() {
		test, ok := pointTests[pointID(kind)]
		if !ok {
			t.Errorf("nothing shows %s", pointID(kind))
			continue
		}
		t.Run(strings.ReplaceAll(pointID(kind), "/", "-")+"/memory", func(t *testing.T) {
			if test.realTime {
				test.show(t, envtest.Start(t, test.opts...))
				return
			}
			envtest.Simulate(t, test.show, append(test.opts, envtest.WithoutLatency())...) // they show moments
		})
		if test.onEtcd {
			t.Run(strings.ReplaceAll(pointID(kind), "/", "-")+"/embedded", func(t *testing.T) {
				t.Parallel() // they wait for etcd's own clock
				test.show(t, envtest.Start(t, append(test.opts, envtest.WithStore(embedded.New(embedded.Config{})))...))
			})
		}
	}
}
