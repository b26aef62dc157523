// Package storagetest owns the contract that every kind of store passes: all of
// upstream's storage contract (k8s.io/apiserver/pkg/storage/testing), on an etcd3
// store and on a watch cache in front of one, as the API server has them. It
// never says what is right; upstream's code does. Only tests import it.
package storagetest

import (
	"context"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

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

// Opener makes an empty store for one case and returns a client of it. Both end
// with the case, by t.Cleanup.
type Opener func(t *testing.T) *kubernetes.Client

// Access is a way to a client of a started store: ByClient or ByEndpoints.
type Access func(storage.Backend) (*kubernetes.Client, error)

// ByClient is how the REST storage gets there: the store's own client.
func ByClient(store storage.Backend) (*kubernetes.Client, error) { return store.Client() }

// ByEndpoints is how callers get there that dial for themselves: gRPC, to the
// store's endpoints.
func ByEndpoints(store storage.Backend) (*kubernetes.Client, error) {
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

// Each returns an Opener that starts a new store for each case.
func Each(newStore func(t *testing.T) storage.Backend, by Access) Opener {
	return func(t *testing.T) *kubernetes.Client {
		t.Helper()
		store := newStore(t)
		if err := store.Start(context.Background()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := store.Stop(context.Background()); err != nil {
				t.Error(err)
			}
		})
		client, err := by(store)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		return client
	}
}

// gates are the feature gates that a case wants on or off.
type gates = featuregatetesting.FeatureOverrides

// testCase is one call of upstream's contract. A name with a slash is a variant.
type testCase struct {
	name  string
	gates gates
	run   func(t *testing.T, open Opener)
	open  Opener // set by casesOn
	company
}

// Run runs the contract on stores that differ in their names here. Its subtests
// are GATES/STORE/LAYER/NAME: GATES are the feature gates that are not at their
// defaults, LAYER is etcd3 or cacher, and NAME is that of upstream's function,
// after RunTest or Run. On a watch cache two subtests of upstream's List skip
// themselves: limits count for nothing there at resource version 0. Feature
// gates are set for the whole process, so nothing that reads or sets them may
// run at the same time.
func Run(t *testing.T, stores map[string]Opener) {
	var cases []testCase
	for _, name := range slices.Sorted(maps.Keys(stores)) {
		cases = append(cases, casesOn(name, stores[name])...)
	}
	runCases(t, cases, len(stores))
}

// casesOn returns all cases, for one store.
func casesOn(name string, open Opener) []testCase {
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

// runCases runs the cases with the same gates together.
func runCases(t *testing.T, cases []testCase, stores int) {
	for len(cases) > 0 {
		set := unusual(cases[0].gates)
		var same, others []testCase
		for _, c := range cases {
			if maps.Equal(unusual(c.gates), set) {
				same = append(same, c)
			} else {
				others = append(others, c)
			}
		}
		t.Run(gatesName(set), func(t *testing.T) {
			setGates(t, set)
			runGroup(t, same, stores)
		})
		cases = others
	}
}

// unusual returns the gates that are not as they are anyway.
func unusual(set gates) gates {
	differ := gates{}
	for gate, on := range set {
		if utilfeature.DefaultFeatureGate.Enabled(gate) != on {
			differ[gate] = on
		}
	}
	return differ
}

// runGroup runs the cases of a group: first those that must not wait in turn;
// then those that set gates one by one, and at the same time those that time
// matters to, followed by the others.
func runGroup(t *testing.T, cases []testCase, stores int) {
	start(t, cases, first, timedAtOnce*stores)()
	setters := start(t, cases, none, 1)
	start(t, cases, few, timedAtOnce*stores)()
	start(t, cases, many, atOnce*stores)()
	setters()
}

// start starts the cases of one company and returns a function that waits for
// them.
func start(t *testing.T, cases []testCase, with company, limit int) (wait func()) {
	queue := make(chan testCase, len(cases))
	for _, c := range cases {
		if c.company == with {
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

// company is with how many others a case runs at a time.
type company int

const (
	many  company = iota
	first         // because an object with a second to live is read in parallel subtests
	few           // because time matters to upstream's function
	none          // of its own kind, because upstream's function sets a feature gate
)

// timed marks a case with objects that live for a second, or a watcher that must
// not be slower than its store.
func timed(c testCase) testCase {
	c.company = few
	return c
}

// urgent marks a case whose parallel subtests read an object with a second to
// live: they would wait for those of other cases.
func urgent(c testCase) testCase {
	c.company = first
	return c
}

// alone marks a case whose function sets a feature gate.
func alone(c testCase) testCase {
	c.company = none
	return c
}

// setGates sets gates for a test, and forgets for as long what upstream found
// out about other stores.
func setGates(t *testing.T, set gates) {
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, set)
	before := feature.DefaultFeatureSupportChecker
	feature.DefaultFeatureSupportChecker = feature.NewDefaultFeatureSupportChecker()
	t.Cleanup(func() { feature.DefaultFeatureSupportChecker = before })
}

// gatesName names a set of gates for a person.
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
