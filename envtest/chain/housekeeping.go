package chain

import (
	"net/http"
	"time"

	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
)

// setWithoutHousekeeping leaves out what a server does by the clock. Watches for which the client
// names no end last for a day or two.
func setWithoutHousekeeping(run *options.ServerRunOptions) {
	run.Etcd.EnableWatchCache = false
	run.Etcd.StorageConfig.CompactionInterval = 0
	run.Etcd.StorageConfig.CountMetricPollPeriod = 0
	run.Features.EnablePriorityAndFairness = false
	run.Admission.GenericAdmission.DefaultOffPlugins.Insert(mutating.PluginName)
	run.GenericServerRunOptions.MinRequestTimeout = 24 * 60 * 60
}

// rareRenewal is how often a server renews its identity lease without housekeeping. The
// lease lasts for an hour.
const rareRenewal = 10 * time.Minute

// takeOverRenewal makes the renewals of identity leases rare, which upstream lets
// integration tests do.
func takeOverRenewal() (giveBack func()) {
	before := controlplaneapiserver.IdentityLeaseRenewIntervalPeriod
	controlplaneapiserver.IdentityLeaseRenewIntervalPeriod = rareRenewal
	return func() { controlplaneapiserver.IdentityLeaseRenewIntervalPeriod = before }
}

// longWatches leaves the end of a server's own watches to --min-request-timeout:
// informers ask for five to ten minutes, and then begin a new one.
type longWatches struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l longWatches) RoundTrip(req *http.Request) (*http.Response, error) {
	query := req.URL.Query()
	if query.Get("watch") != "" && query.Has("timeoutSeconds") {
		query.Del("timeoutSeconds")
		req = req.Clone(req.Context())
		req.URL.RawQuery = query.Encode()
	}
	return l.next.RoundTrip(req)
}

// WrappedRoundTripper implements k8s.io/apimachinery/pkg/util/net.RoundTripperWrapper.
func (l longWatches) WrappedRoundTripper() http.RoundTripper { return l.next }
