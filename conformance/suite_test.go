package conformance_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"snowglobe.test/conformance"
	"snowglobe.test/conformance/specs"
	"snowglobe.test/envtest"
)

// TestConformance runs all cases on every kind of control plane.
func TestConformance(t *testing.T) {
	cases := conformance.Cases()
	specs.DescribeVirtual("in virtual time, on memory", conformance.Memory(), cases)
	if !testing.Short() {
		specs.Describe("on memory", conformance.Memory(), cases)
		specs.Describe("on embedded etcd", conformance.Embedded(), cases)
		specs.Describe("by kubeconfig over TLS", remote{folder: t.TempDir()}, cases)
	}
	gomega.RegisterFailHandler(ginkgo.Fail)
	ginkgo.RunSpecs(t, "conformance")
}

// remote is a control plane that the cases know by its kubeconfig alone.
type remote struct{ folder string }

// Open implements conformance.Source.
func (r remote) Open(ctx context.Context) (*conformance.Cluster, error) {
	path := filepath.Join(r.folder, "kubeconfig")
	cp, err := envtest.Launch(ctx, envtest.WithKubeconfig(path))
	if err != nil {
		return nil, err
	}
	cluster, err := conformance.Kubeconfig{Path: path, Release: envtest.Release()}.Open(ctx)
	if err != nil {
		return nil, errors.Join(err, cp.Stop(ctx))
	}
	disconnect := cluster.Close
	cluster.Close = func(ctx context.Context) error {
		return errors.Join(disconnect(ctx), cp.Stop(context.WithoutCancel(ctx)), cp.Err())
	}
	return cluster, nil
}

// String implements conformance.Source.
func (r remote) String() string { return "kubeconfig" }
