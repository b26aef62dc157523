package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/onsi/gomega"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/conformance"
	"snowglobe.test/conformance/engine"
	"snowglobe.test/conformance/suite"
	"snowglobe.test/conformance/target"
	"snowglobe.test/envtest/storage/cluster"
)

// TestClusterOfThree asks each of the three servers, which have one store.
func TestClusterOfThree(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts an etcd of three members")
	}
	t.Parallel()
	asked := map[http.RoundTripper]bool{} // the ways to servers
	var cases []suite.Case
	for i := range 12 {
		cases = append(cases, made(fmt.Sprint("S0/", i), suite.Needs{}, func(ctx context.Context, target *suite.T) {
			asked[target.Cluster.Config.Transport] = true
			// A server is ready before it has written its Lease.
			target.Eventually(ctx, func(ctx context.Context) ([]coordinationv1.Lease, error) {
				leases, err := target.Kube.CoordinationV1().Leases(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
				return leases.Items, err
			}).Should(gomega.HaveLen(3), "one for each server")
			before, err := target.Kube.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
			target.Must(err, "list Namespaces")
			target.Namespace(ctx)
			assert.GreaterOrEqual(t, len(before.Items), i, "those of the cases before")
		}))
	}
	report, err := engine.Run(t.Context(), target.Cluster(cluster.Config{}), cases, nil)
	require.NoError(t, errors.Join(err, report.Err()))
	assert.Equal(t, len(cases), report.Count(engine.Passed), plain(report))
	assert.Len(t, asked, 3, "the servers")
}

// stockFolder names the folder with stock programs; docs/HACKING.md says how to build them.
const stockFolder = "SNOWGLOBE_PROGRAMS"

// TestStock judges the stock kube-apiserver, which keeps every promise that can be judged there.
func TestStock(t *testing.T) {
	folder := os.Getenv(stockFolder)
	if folder == "" {
		t.Skipf("%s names no folder with kube-apiserver and etcd", stockFolder)
	}
	report, err := engine.Run(t.Context(), target.Stock{Folder: folder}, inPart(8), nil)
	require.NoError(t, errors.Join(err, report.Err()))
	assert.Positive(t, report.Count(engine.Passed))
}

// TestStockIsMissing names the program that is not there, or is none.
func TestStockIsMissing(t *testing.T) {
	folder := t.TempDir()
	for _, c := range []struct{ want, program, text string }{
		{filepath.Join(folder, "kube-apiserver") + " is missing; build it", "kube-apiserver", "#!/bin/sh\necho something else\n"},
		{filepath.Join(folder, "etcd") + " is missing; build it", "etcd", "#!/bin/sh\n"},
		{"kube-apiserver says that it is \"something else\", which is no release of Kubernetes", "etcd", ""},
	} {
		_, err := conformance.Execute(t.Context(), conformance.Options{Stock: folder})
		require.ErrorContains(t, err, c.want)
		require.NoError(t, os.WriteFile(filepath.Join(folder, c.program), []byte(c.text), 0o700))
	}
}
