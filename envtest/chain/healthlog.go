package chain

import (
	"net/http"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/klog/v2"
)

// replaceLogCheck swaps upstream's "log" health check for one that flushes the
// log when it is asked. Upstream's starts a process-wide goroutine that flushes
// every minute and never ends.
func replaceLogCheck(config *genericapiserver.Config) {
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
