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

// opened is the source that hands out a cluster it does not close, behind a
// liar.
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

// TestEveryCaseCanFail puts each case to servers that break its promise, and
// demands that the case says so: an assertion of its own fails, not the clean-up.
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
				problems = append(problems, tested.ID+": no lie is known that makes it fail")
			}
			for _, told := range all[tested.ID] {
				if problem := uncovered(cluster, tested, told); problem != "" {
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

// uncovered says why a lie was not found out, nothing if it was.
func uncovered(cluster *conformance.Cluster, tested conformance.Case, told lie) string {
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
		return "it was never told"
	case result.State != conformance.Failed:
		return "the case " + string(result.State)
	case result.Location == "":
		return "no assertion of the case failed, but: " + result.Message
	}
	return ""
}
