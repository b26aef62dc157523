package conformance_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"snowglobe.test/conformance"
	"snowglobe.test/envtest/virtualtime"
)

// opened is a source that returns a running cluster behind a liar, and does not close
// the cluster.
type opened struct {
	cluster *conformance.Cluster
	wrap    func(http.RoundTripper) http.RoundTripper
}

// Open implements conformance.Source.
func (o opened) Open(context.Context) (*conformance.Cluster, error) {
	cluster := *o.cluster
	cluster.Wrap, cluster.Close = o.wrap, nil
	return &cluster, nil
}

// String implements conformance.Source.
func (o opened) String() string { return "a liar" }

// TestEveryCaseCanFail runs each case against servers that break its promise. One of
// the case's own assertions must fail, not the clean-up.
func TestEveryCaseCanFail(t *testing.T) {
	all := lies()
	var problems []string
	err := virtualtime.Bubble(func() error {
		cluster, err := conformance.Memory().Open(context.Background())
		if err != nil {
			return err
		}
		for _, tested := range conformance.Cases() {
			if len(all[tested.ID]) == 0 {
				problems = append(problems, tested.ID+": there is no lie that makes it fail")
			}
			for _, told := range all[tested.ID] {
				if problem := undetected(cluster, tested, told); problem != "" {
					problems = append(problems, fmt.Sprintf("%s: %q: %s", tested.ID, told.name, problem))
				}
			}
			delete(all, tested.ID)
		}
		return cluster.Close(context.Background())
	})
	if err != nil {
		t.Error(err)
	}
	for _, problem := range problems {
		t.Error(problem)
	}
	for id := range all {
		t.Errorf("there is no case %s to lie to", id)
	}
}

// undetected says why a case did not detect a lie; it is empty if it did.
func undetected(cluster *conformance.Cluster, tested conformance.Case, told lie) string {
	var times atomic.Int64
	source := opened{cluster: cluster, wrap: func(honest http.RoundTripper) http.RoundTripper {
		return &liar{honest: honest, lie: told, told: &times}
	}}
	report, err := conformance.Run(context.Background(), source, []conformance.Case{tested}, nil)
	if err != nil {
		return err.Error()
	}
	result := report.Results[0]
	switch {
	case times.Load() == 0:
		return "the lie was never told"
	case result.State != conformance.Failed:
		return "the case " + string(result.State) + " all the same"
	case result.Location == "":
		return "no assertion of the case failed, only: " + result.Message
	}
	return ""
}
