package store

import (
	"context"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/version"
)

var maintenanceCases = []Case{
	{
		ID: "maintenance/version-supports-progress-requests",
		Promise: "Each endpoint tells a version of etcd with which API servers ask for progress: 3.4.31, 3.5.13 " +
			"or later.",
		Source: "k8s.io/apiserver/pkg/storage/feature/feature_support_checker.go; KEP-2340",
		Test: func(ctx context.Context, t *T) {
			for _, endpoint := range t.Client.Endpoints() {
				status, err := t.Client.Status(ctx, endpoint)
				t.Must(err, "ask %s for its status", endpoint)
				got, err := version.ParseSemantic(status.Version)
				t.Must(err, "read the version %q of %s", status.Version, endpoint)
				old := got.LessThan(version.MustParseSemantic("3.4.31")) ||
					got.AtLeast(version.MustParseSemantic("3.5.0")) && got.LessThan(version.MustParseSemantic("3.5.13"))
				t.Expect(old).To(gomega.BeFalse(), "whether version %s of %s is too old", got, endpoint)
			}
		},
	},
	{
		ID:      "maintenance/tells-its-size",
		Promise: "Each endpoint tells the size of its database, which is the metric apiserver_storage_size_bytes.",
		Source:  "k8s.io/apiserver/pkg/server/storage; k8s.io/apiserver/pkg/storage/storagebackend/factory",
		Test: func(ctx context.Context, t *T) {
			t.Create(ctx, "a", "1")
			for _, endpoint := range t.Client.Endpoints() {
				status, err := t.Client.Status(ctx, endpoint)
				t.Must(err, "ask %s for its status", endpoint)
				t.Expect(status.DbSize).To(gomega.BeNumerically(">", 0), "the size of %s", endpoint)
			}
		},
	},
	{
		ID:      "maintenance/health-check-succeeds",
		Promise: "A read of a key named health, which nobody writes, is the health check of API servers, and succeeds.",
		Source:  "k8s.io/apiserver/pkg/storage/storagebackend/factory/etcd3.go",
		Test: func(ctx context.Context, t *T) {
			got, err := t.Client.KV.Get(ctx, t.Key("health"))
			t.Must(err, "get the key health")
			t.Expect(got.Kvs).To(gomega.BeEmpty(), "the key health")
		},
	},
}
