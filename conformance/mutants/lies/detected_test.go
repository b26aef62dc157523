package lies_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"snowglobe.test/conformance"
	"snowglobe.test/conformance/engine"
	"snowglobe.test/conformance/suite"
	"snowglobe.test/conformance/target"
	"snowglobe.test/envtest/virtualtime"
	"snowglobe.test/internal/sample"
)

// opened is a source that returns a running cluster behind a liar, and does not close
// the cluster.
type opened struct {
	cluster *suite.Cluster
	wrap    func(http.RoundTripper) http.RoundTripper
}

// Open implements engine.Source. Closing what it returns closes nothing.
func (o opened) Open(context.Context) (engine.Target[*suite.T], error) {
	cluster := *o.cluster
	cluster.Wrap = o.wrap
	cluster.PollInterval = time.Second // a lie is told for as long as the case asks
	return &cluster, nil
}

// String implements engine.Source.
func (o opened) String() string { return "a liar" }

var lieTo = flag.String("lie-to", "", "lie to the cases whose ID matches this regexp, and to no others")

// TestEveryCaseCanFail runs one case of 64, or with -all each,
// against servers that break its promise; with -lie-to those that it names. One of
// the case's own assertions must fail, not the clean-up.
func TestEveryCaseCanFail(t *testing.T) {
	named := regexp.MustCompile(*lieTo)
	all := lies()
	err := virtualtime.Bubble(func() error {
		cluster, err := target.Memory().Open(context.Background())
		if err != nil {
			return err
		}
		for i, tested := range conformance.Cases() {
			assert.NotEmpty(t, all[tested.ID], "%s: there is no lie that makes it fail", tested.ID)
			if *lieTo == "" && !sample.Has(i, 64) || !named.MatchString(tested.ID) {
				all[tested.ID] = all[tested.ID][:0]
			}
			for _, told := range all[tested.ID] {
				assert.Empty(t, undetected(cluster.(*target.Launched).Cluster, tested, told), "%s: %q", tested.ID, told.name)
			}
			delete(all, tested.ID)
		}
		return cluster.Close(context.Background())
	})
	assert.NoError(t, err)
	for id := range all {
		t.Errorf("there is no case %s to lie to", id)
	}
}

// undetected says why a case did not detect a lie; it is empty if it did.
func undetected(cluster *suite.Cluster, tested suite.Case, told lie) string {
	var times atomic.Int64
	source := opened{cluster: cluster, wrap: func(honest http.RoundTripper) http.RoundTripper {
		return &liar{honest: honest, lie: told, told: &times}
	}}
	report, err := engine.Run(context.Background(), source, []suite.Case{tested}, nil)
	if err != nil {
		return err.Error()
	}
	result := report.Results[0]
	switch {
	case times.Load() == 0:
		return fmt.Sprintf("the lie was never told, and the case %s: %s %s", result.State, result.Location, result.Message)
	case result.State != engine.Failed:
		return "the case " + string(result.State) + " all the same"
	case result.Location == "":
		return "no assertion of the case failed, only: " + result.Message
	}
	return ""
}
