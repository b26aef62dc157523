package envtest_test

import (
	"strings"
	"testing"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/storage/embedded"
	"snowglobe.test/internal/sample"
)

// pointTest shows operations at a point passing, held, failed and lost, and what
// the client saw. It waits for what happens by gates, never by time, since it
// runs in virtual time and in real time.
type pointTest struct {
	show sharedTest
	opts []envtest.Option
	// alone is set for what leaves no server that another could use.
	alone bool
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

// TestPoints shows one of three points at work, or with -all every one. What needs no options of
// its own shares a server.
func TestPoints(t *testing.T) {
	opts := []envtest.Option{envtest.WithoutLatency()} // they show moments
	memory := &simulated{opts: opts}
	defer memory.stop(t)
	for i, kind := range fault.Points() {
		test, ok := pointTests[pointID(kind)]
		if !ok {
			t.Errorf("nothing shows %s", pointID(kind))
			continue
		}
		if !sample.Has(i, 3) {
			continue
		}
		t.Run(strings.ReplaceAll(pointID(kind), "/", "-"), func(t *testing.T) {
			switch {
			case test.realTime:
				test.show(t, envtest.Start(t, test.opts...))
			case test.alone || test.opts != nil:
				envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) { test.show(t, cp) }, append(test.opts, opts...)...)
			default:
				memory.run(t, test.show)
			}
		})
	}
}

// TestPointsOnEtcd shows points at work that the kind of store could make a difference to.
func TestPointsOnEtcd(t *testing.T) {
	sample.Long(t)
	t.Parallel() // it waits for etcd's own clock
	start := func(t *testing.T, opts ...envtest.Option) *envtest.ControlPlane {
		return envtest.Start(t, append(opts, envtest.WithStore(embedded.New(embedded.Config{})))...)
	}
	etcd := &shared{start: func() *envtest.ControlPlane { return start(t) }}
	for _, kind := range fault.Points() {
		test := pointTests[pointID(kind)]
		if !test.onEtcd {
			continue
		}
		t.Run(strings.ReplaceAll(pointID(kind), "/", "-"), func(t *testing.T) {
			if test.opts != nil {
				test.show(t, start(t, test.opts...))
				return
			}
			etcd.run(t, test.show)
		})
	}
}
