package envtest_test

import (
	"testing"

	"snowglobe.test/internal/hostile"
	"snowglobe.test/internal/sample"
)

// TestHostile has servers in memory called again where the environment names proxies for
// everything, that answer no request, and where no client speaks HTTP/2.
func TestHostile(t *testing.T) {
	sample.Long(t)
	t.Parallel() // all of it is in another process
	hostile.AgainWith(t, []string{"DISABLE_HTTP2=true"},
		"TestWebhooks", "TestWebhookByURL", "TestWithWebhookFlag", "TestAuthenticationConfig", "TestProxies", "TestWithDialer",
		"ExampleSimulateContext_kubectl")
}
