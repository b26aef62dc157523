package chain

import (
	"net/http"
	"slices"
	"time"

	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
)

// withoutHousekeeping are flags that leave out what a server does by the clock though
// no client asks for it. Watches for which the client names no end last for a day or two.
var withoutHousekeeping = []string{
	"--watch-cache=false",
	"--etcd-compaction-interval=0",
	"--etcd-count-metric-poll-period=0",
	"--enable-priority-and-fairness=false",
	"--disable-admission-plugins=MutatingAdmissionPolicy",
	"--feature-gates=UnknownVersionInteroperabilityProxy=false",
	"--min-request-timeout=86400",
}

// rareRenewal is how often a server renews its identity lease without housekeeping. The
// lease lasts for an hour.
const rareRenewal = 10 * time.Minute

// ParseFlagsWithoutHousekeeping is ParseFlags for a server that does little by the clock.
func ParseFlagsWithoutHousekeeping(flags []string) (*Flags, error) {
	parsed, err := ParseFlags(slices.Concat(withoutHousekeeping, flags))
	if err == nil {
		parsed.withoutHousekeeping = true
	}
	return parsed, err
}

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
