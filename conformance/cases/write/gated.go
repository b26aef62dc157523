package write

import (
	"context"
	"net/http"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/conformance/suite"
)

var gatedCases = []suite.Case{
	{ID: "S12/field-behind-a-gate-is-dropped", Failure: true, Test: fieldBehindAGateIsDropped,
		Source: "KEP-4355; k8s.io/kubernetes/pkg/registry/coordination/lease/strategy.go, PrepareForCreate and " +
			"PrepareForUpdate",
		Promise: "While CoordinatedLeaderElection is off, the strategy and the preferred holder of a Lease are " +
			"dropped by creates and updates, without an error, all else is kept, and LeaseCandidates are 404."},
	{ID: "S12/declared-validation-agrees", Failure: true, Since: "1.36", Test: declaredValidationAgrees,
		Source: "KEP-5073; k8s.io/apiserver/pkg/registry/rest/validate.go; k8s.io/apiserver/pkg/validation/metrics.go",
		Promise: "What is declared and what is written by hand about the fields of a ReplicationController refuse a " +
			"broken one with 422 that names each field once, for a create and an update, and no difference between " +
			"the two and no panic is counted."},
}

func fieldBehindAGateIsDropped(ctx context.Context, t *suite.T) {
	leases := "/apis/coordination.k8s.io/v1/namespaces/" + t.Namespace(ctx) + "/leases"
	send := func(method, path, version string) suite.Answer {
		return t.Ask(ctx, suite.Request{Method: method, Path: path, Body: map[string]any{
			"metadata": map[string]any{"name": "one", "resourceVersion": version},
			"spec": map[string]any{"holderIdentity": "a", "leaseDurationSeconds": 10,
				"strategy": "OldestEmulationVersion", "preferredHolder": "b"},
		}})
	}
	kept := func(got suite.Answer, code int) (version string) {
		t.ExpectCode(got, code)
		t.Expect(got.Header.Values("Warning")).To(gomega.BeEmpty(), "%s", got)
		t.Expect(string(got.Body)).NotTo(gomega.Or(gomega.ContainSubstring(`"strategy"`),
			gomega.ContainSubstring(`"preferredHolder"`)), "%s", got)
		t.Expect(string(got.Body)).To(gomega.And(gomega.ContainSubstring(`"holderIdentity":"a"`),
			gomega.ContainSubstring(`"leaseDurationSeconds":10`)), "%s", got)
		lease := suite.Get(ctx, t, t.Kube.CoordinationV1().Leases(t.Namespace(ctx)).Get, "one")
		return lease.ResourceVersion
	}
	version := kept(send(http.MethodPost, leases, ""), http.StatusCreated)
	kept(send(http.MethodPut, leases+"/one", version), http.StatusOK)
	kept(t.Get(ctx, leases+"/one"), http.StatusOK)
	t.Answered(ctx, "/apis/coordination.k8s.io/v1beta1/leasecandidates", http.StatusNotFound)
}

func declaredValidationAgrees(ctx context.Context, t *suite.T) {
	path := "/api/v1/namespaces/" + t.Namespace(ctx) + "/replicationcontrollers"
	counted := func() float64 {
		return t.Metric(ctx, "apiserver_validation_declarative_validation_parity_discrepancies_total") +
			t.Metric(ctx, "apiserver_validation_declarative_validation_panics_total")
	}
	send := func(method, path string, replicas, seconds int) suite.Answer {
		labels := map[string]any{"app": "x"}
		return t.Ask(ctx, suite.Request{Method: method, Path: path, Body: map[string]any{
			"metadata": map[string]any{"name": "one"},
			"spec": map[string]any{"replicas": replicas, "minReadySeconds": seconds, "selector": labels,
				"template": map[string]any{
					"metadata": map[string]any{"labels": labels},
					"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": "none"}}}}},
		}})
	}
	before := counted()
	refused := func(got suite.Answer) {
		status := t.ExpectStatus(got, suite.Invalid)
		var fields []string
		for _, cause := range status.Details.Causes {
			t.Expect(cause.Type).To(gomega.Equal(metav1.CauseTypeFieldValueInvalid), "%s", got)
			t.Expect(cause.Message).To(gomega.ContainSubstring("must be greater than or equal to 0"), "%s", got)
			fields = append(fields, cause.Field)
		}
		t.Expect(fields).To(gomega.ConsistOf("spec.replicas", "spec.minReadySeconds"), "%s", got)
	}
	refused(send(http.MethodPost, path, -1, -2))
	t.ExpectCode(send(http.MethodPost, path, 0, 0), http.StatusCreated)
	refused(send(http.MethodPut, path+"/one", -1, -2))
	t.Answered(ctx, path+"/one", http.StatusOK)
	t.Expect(counted()).To(gomega.Equal(before), "differences and panics that the server has counted")
}
