package conformance_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"snowglobe.test/conformance"
	"snowglobe.test/conformance/engine"
	"snowglobe.test/conformance/ledger"
	"snowglobe.test/conformance/specs"
	"snowglobe.test/conformance/suite"
	"snowglobe.test/conformance/target"
	"snowglobe.test/envtest"
	"snowglobe.test/envtest/linked"
	"snowglobe.test/envtest/storage/embedded"
	"snowglobe.test/internal/sample"
)

// TestConformance runs one case of 25 in virtual time, on memory, and one in real time, as specs.
// The whole suite is a command, and a step of CI of its own.
func TestConformance(t *testing.T) {
	t.Parallel()
	specs.DescribeVirtual("in virtual time, on memory", target.Memory(), inPart(25))
	if !testing.Short() {
		target := specs.On(target.Embedded(embedded.Config{}))
		ginkgo.BeforeSuite(target.Open)
		target.Describe("on embedded etcd", inPart(25)[:1])
	}
	gomega.RegisterFailHandler(ginkgo.Fail)
	ginkgo.RunSpecs(t, "conformance")
}

// TestConformanceOnEtcd runs a part of the cases in real time, as TestConformanceOverTLS does,
// or with -all each. What takes real time mostly waits, so it
// does that side by side.
func TestConformanceOnEtcd(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	t.Parallel()
	cases := inPart(48)
	report, err := engine.Run(t.Context(), target.Embedded(embedded.Config{}), cases, nil, engine.Parallel(2))
	require.NoError(t, err)
	checkPassed(t, report, len(cases))
}

// TestConformanceOverTLS judges a control plane as somebody's cluster, by its kubeconfig: nothing
// is touched there that the cases have not made, what they make is what target.Makes says,
// and nothing is left.
func TestConformanceOverTLS(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	t.Parallel()
	cases, source := inPart(16), &remote{folder: t.TempDir()}
	report, err := engine.Run(t.Context(), source, cases, nil)
	require.NoError(t, err)
	checkPassed(t, report, len(cases))
	checkMakes(t, source.ledger.Pages())
	assert.Equal(t, source.before, source.after, "what there is on the cluster")
}

// checkPassed asserts that a run judged so many cases, and no failure.
func checkPassed(t *testing.T, report engine.Report, cases int) {
	t.Helper()
	assert.Len(t, report.Results, cases)
	for _, result := range report.Results {
		assert.True(t, result.State == engine.Passed || result.State == engine.NotApplicable, "%s %s: %s: %s", result.Case.ID, result.State, result.Location, result.Message)
	}
}

// inPart are one of n cases, or with -all each.
func inPart(n int) []suite.Case {
	var chosen []suite.Case
	for i, c := range conformance.Cases() {
		if sample.Has(i, n) {
			chosen = append(chosen, c)
		}
	}
	return chosen
}

// remote is a control plane that the cases know by its kubeconfig alone.
type remote struct {
	folder        string
	ledger        *ledger.Ledger
	before, after []string // the objects there, before the first case and after the last
}

// Open implements engine.Source.
func (r *remote) Open(ctx context.Context) (engine.Target[*suite.T], error) {
	path := filepath.Join(r.folder, "kubeconfig")
	cp, err := envtest.Launch(ctx, envtest.WithKubeconfig(path))
	if err != nil {
		return nil, err
	}
	opened, err := target.Kubeconfig{Path: path, Release: linked.Release()}.Open(ctx)
	if err != nil {
		return nil, errors.Join(err, cp.Stop(ctx))
	}
	cluster := opened.(target.Lasting).Cluster
	r.ledger = cluster.Ledger
	if r.before, err = objects(ctx, cluster.Config); err != nil {
		return nil, errors.Join(err, cp.Stop(ctx))
	}
	return hooked{Target: opened, close: func(ctx context.Context) error {
		err := opened.Close(ctx)
		var listed error
		r.after, listed = objects(context.WithoutCancel(ctx), cluster.Config)
		return errors.Join(err, listed, cp.Stop(context.WithoutCancel(ctx)), cp.Err())
	}}, nil
}

// String implements engine.Source[*suite.T].
func (r *remote) String() string { return "kubeconfig" }

// servers are objects that a server makes a while after it is ready.
var servers = []string{"services default/kubernetes", "ipaddresses /10.0.0.1"}

// objects lists what there is on a cluster, without the Events and Leases that come and go.
func objects(ctx context.Context, config *rest.Config) (all []string, err error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // no client-side rate limit
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	found, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	lists, err := client.ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, resource := range list.APIResources {
			if !slices.Contains(resource.Verbs, "list") || resource.Name == "events" || resource.Name == "leases" {
				continue
			}
			items, err := found.Resource(version.WithResource(resource.Name)).List(ctx, metav1.ListOptions{})
			if apierrors.IsNotFound(err) {
				continue // discovery names a resource a little longer than there is its definition
			}
			if err != nil {
				return nil, err
			}
			for _, item := range items.Items {
				if object := resource.Name + " " + item.Namespace + "/" + item.Name; !slices.Contains(servers, object) {
					all = append(all, object)
				}
			}
		}
	}
	slices.Sort(all)
	return all, nil
}
