package robustness

import (
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/tests/v3/robustness/model"
	"go.etcd.io/etcd/tests/v3/robustness/report"
	"go.etcd.io/etcd/tests/v3/robustness/traffic"
	"go.etcd.io/etcd/tests/v3/robustness/validate"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"snowglobe.test/fakes/etcd"
)

var soak = flag.Duration("soak", 0, "keep going for this long, with more traffic")

func TestMain(m *testing.M) {
	flag.Parse()
	// Upstream's knobs. They are set before anything runs.
	traffic.RequestTimeout = patience
	traffic.WatchTimeout = watchTime
	goleak.VerifyTestMain(m)
}

// kinds are upstream's traffic.
var kinds = []struct {
	name string
	traffic.Traffic
}{
	{"put", traffic.EtcdPut},
	{"delete", traffic.EtcdDelete},
	{"put-delete-lease", traffic.EtcdPutDeleteLease},
	{"kubernetes", traffic.Kubernetes},
	{"kubernetes-create-delete", traffic.KubernetesCreateDelete},
}

// connections are the kinds of clients the in-memory etcd has.
var connections = []struct {
	name string
	open func(t *testing.T, s *etcd.Server) dialer
}{
	{"in process", func(_ *testing.T, s *etcd.Server) dialer { return inProcess(s) }},
	{"gRPC", overGRPC},
}

// smoke is a load that takes less than a second.
var smoke = load{revisions: 400, writers: 6, watchers: 4, requests: 2000, watches: 100}

// TestGuarantees records upstream's traffic with each kind of client and has
// upstream's validators judge it.
func TestGuarantees(t *testing.T) {
	l := smoke
	if *soak > 0 {
		l = load{revisions: 4000, writers: 8, watchers: 8, requests: 4000, watches: 100}
	}
	var all seen
	for began := time.Now(); ; {
		for _, kind := range kinds {
			for _, d := range connections {
				t.Run(kind.name+"/"+d.name, func(t *testing.T) {
					reports := simulate(t, d.open(t, newServer(t)), kind.Traffic, l)
					all = all.plus(count(reports))
					requireGuarantees(t, kind.Traffic, reports)
				})
			}
		}
		if t.Failed() || time.Since(began) >= *soak {
			break
		}
	}
	t.Logf("%+v", all)
	require.NotContains(t, []int{all.operations, all.watches, all.events, all.progress, all.compactions}, 0, "what was recorded shows nothing")
}

// plus adds up.
func (n seen) plus(m seen) seen {
	return seen{
		n.operations + m.operations, n.watches + m.watches, n.events + m.events,
		n.progress + m.progress, n.compactions + m.compactions,
	}
}

// requireGuarantees fails unless every validator says that all is well.
func requireGuarantees(t *testing.T, kind traffic.Traffic, reports []report.ClientReport) {
	t.Helper()
	log, err := persisted(reports)
	result := judge(kind, reports, log)
	// A verdict that is missing or that took too long is not a success either.
	require.Equal(t, validate.Success, result.Assumptions.Status, result.Assumptions.Message)
	require.Equal(t, validate.Success, result.Linearization.Status, result.Linearization.Message)
	require.NoError(t, err)
	require.Equal(t, validate.Success, result.Watch.Status, result.Watch.Message)
	require.Equal(t, validate.Success, result.Serializable.Status, result.Serializable.Message)
}

// judge has upstream's validators look at a record.
func judge(kind traffic.Traffic, reports []report.ClientReport, log []model.EtcdRequest) validate.RobustnessResult {
	cfg := validate.Config{ExpectRevisionUnique: kind.ExpectUniqueRevision()}
	return validate.ValidateAndReturnVisualize(zap.NewNop(), cfg, reports, log, 2*time.Minute)
}
