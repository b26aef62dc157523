package upstream

// Works around healthz.LogHealthz (k8s.io/apiserver/pkg/server/healthz), the "log"
// health check, which starts a goroutine of the process that flushes the log every
// minute and never ends. TestReplaceLogCheck fails when upstream's configuration
// does not have that check any more.

import (
	"net/http"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/klog/v2"
)

// ReplaceLogCheck swaps upstream's "log" check for one that flushes when asked.
func ReplaceLogCheck(config *genericapiserver.Config) {
	flush := healthz.NamedCheck(healthz.LogHealthz.Name(), func(*http.Request) error {
		klog.Flush()
		return nil
	})
	for _, checks := range [][]healthz.HealthChecker{config.HealthzChecks, config.LivezChecks, config.ReadyzChecks} {
		for i, check := range checks {
			if check == healthz.LogHealthz {
				checks[i] = flush
			}
		}
	}
}
