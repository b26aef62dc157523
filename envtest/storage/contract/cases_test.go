package contract

import (
	"context"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"k8s.io/apiserver/pkg/storage/feature"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	featuregatetesting "k8s.io/component-base/featuregate/testing"

	"snowglobe.test/envtest/storage"
)

// opener returns a client of an empty store for one case. t.Cleanup ends both.
type opener func(t *testing.T) *kubernetes.Client

// clientFunc returns a client of a started store: byClient or byEndpoints.
type clientFunc func(storage.Backend) (*kubernetes.Client, error)

// byClient returns the store's own client, which the REST storage uses.
func byClient(store storage.Backend) (*kubernetes.Client, error) { return store.Client() }

// byEndpoints dials the store's endpoints over gRPC, as a few upstream callers do.
func byEndpoints(store storage.Backend) (*kubernetes.Client, error) {
	endpoints := store.Endpoints()
	cfg := clientv3.Config{Endpoints: endpoints.URLs, Logger: zap.NewNop()}
	if endpoints.Dial != nil {
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return endpoints.Dial(ctx, "tcp", address)
		}))
	}
	if endpoints.CertFile+endpoints.CAFile != "" {
		var err error
		cfg.TLS, err = transport.TLSInfo{CertFile: endpoints.CertFile, KeyFile: endpoints.KeyFile, TrustedCAFile: endpoints.CAFile}.ClientConfig()
		if err != nil {
			return nil, err
		}
	}
	return kubernetes.New(cfg)
}

// each returns an opener that starts a new store for each case.
func each(newStore func(t *testing.T) storage.Backend, newClient clientFunc) opener {
	return func(t *testing.T) *kubernetes.Client {
		t.Helper()
		store := newStore(t)
		must(t, store.Start(context.Background()))
		t.Cleanup(func() {
			for range 2 { // the second time, nothing is left to do
				assert.NoError(t, store.Stop(context.Background()))
			}
		})
		client, err := newClient(store)
		must(t, err)
		t.Cleanup(func() { _ = client.Close() })
		return client
	}
}

// must ends the test if there is an error.
func must(t *testing.T, err error) {
	t.Helper()
	require.NoError(t, err)
}

// gates are the feature gates that a case sets.
type gates = featuregatetesting.FeatureOverrides

// testCase is one call of an upstream function. A name with a slash is a variant.
type testCase struct {
	name  string
	gates gates
	run   func(t *testing.T, open opener)
	open  opener // set by casesOn
	mode  mode
}

// runOn runs the contract on each of the stores, by name. Its subtests are
// GATES/STORE/LAYER/NAME: GATES are the gates not at their defaults, LAYER is etcd3
// or cacher, NAME is upstream's function without RunTest or Run. On a watch cache,
// which ignores limits at resource version 0, two subtests of upstream's List skip
// themselves. Gates are process-wide: nothing may read or set them at the same time.
func runOn(t *testing.T, stores map[string]opener) {
	var cases []testCase
	for _, name := range slices.Sorted(maps.Keys(stores)) {
		cases = append(cases, casesOn(name, stores[name])...)
	}
	runCases(t, cases)
}

// casesOn returns all cases, for one store.
func casesOn(name string, open opener) []testCase {
	var all []testCase
	for layer, cases := range map[string][]testCase{"etcd3": etcd3Cases(), "cacher": cacherCases()} {
		for _, c := range cases {
			c.name, c.open = strings.Join([]string{name, layer, c.name}, "/"), open
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b testCase) int { return strings.Compare(a.name, b.name) })
	return all
}

// runCases runs the cases in groups that share their gates.
func runCases(t *testing.T, cases []testCase) {
	for len(cases) > 0 {
		set := nonDefault(cases[0].gates)
		var same, others []testCase
		for _, c := range cases {
			if maps.Equal(nonDefault(c.gates), set) {
				same = append(same, c)
			} else {
				others = append(others, c)
			}
		}
		t.Run(gatesName(set), func(t *testing.T) {
			setGates(t, set)
			runGroup(t, same)
		})
		cases = others
	}
}

// nonDefault returns the gates that differ from their current setting.
func nonDefault(set gates) gates {
	differ := gates{}
	for gate, on := range set {
		if utilfeature.DefaultFeatureGate.Enabled(gate) != on {
			differ[gate] = on
		}
	}
	return differ
}

// runGroup runs the cases of a group: first the urgent ones; then the serial
// ones and, at the same time, the timed ones followed by the rest.
func runGroup(t *testing.T, cases []testCase) {
	start(t, cases, urgent, timedParallel)()
	setters := start(t, cases, serial, 1)
	start(t, cases, timed, timedParallel)()
	start(t, cases, parallel, maxParallel)()
	setters()
}

// start starts the cases of a mode, at most limit at a time; wait waits for them.
func start(t *testing.T, cases []testCase, with mode, limit int) (wait func()) {
	queue := make(chan testCase, len(cases))
	for _, c := range cases {
		if c.mode == with {
			queue <- c
		}
	}
	close(queue)
	var running sync.WaitGroup
	for range limit {
		running.Go(func() {
			for c := range queue {
				t.Run(c.name, func(t *testing.T) { c.run(t, c.open) })
			}
		})
	}
	return running.Wait
}

// mode decides which cases run at the same time as a case.
type mode int

const (
	parallel mode = iota
	// timed cases have objects that live for a second, or a watcher that must keep up
	// with its store: only few of them run at a time.
	timed
	// urgent cases have parallel subtests that read an object that lives for a second:
	// it would expire while other cases' subtests take their turn.
	urgent
	// serial cases set a feature gate: no two of them run at a time.
	serial
)

func (c testCase) as(m mode) testCase {
	c.mode = m
	return c
}

// setGates sets gates for a test, and hides what upstream cached about other stores.
func setGates(t *testing.T, set gates) {
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, set)
	before := feature.DefaultFeatureSupportChecker
	feature.DefaultFeatureSupportChecker = feature.NewDefaultFeatureSupportChecker()
	t.Cleanup(func() { feature.DefaultFeatureSupportChecker = before })
}

// gatesName names a set of gates for people.
func gatesName(set gates) string {
	if len(set) == 0 {
		return "defaults"
	}
	var words []string
	for gate, on := range set {
		words = append(words, string(gate)+map[bool]string{true: "=on", false: "=off"}[on])
	}
	slices.Sort(words)
	return strings.Join(words, ",")
}

func with(gate featuregate.Feature, on bool) gates { return gates{gate: on} }
