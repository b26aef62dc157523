package chain

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"

	"snowglobe.test/envtest/process"
	"snowglobe.test/envtest/trace"
)

// Probe asks a health endpoint ("readyz", "livez" or "healthz") for its checks, as
// the privileged loopback user and untraced. Ready is true for a 200.
func (c *Chain) Probe(ctx context.Context, endpoint string) (ready bool, checks []trace.Check) {
	req := httptest.NewRequestWithContext(ctx, http.MethodGet, "/"+endpoint+"?verbose", nil)
	req.Header.Set("Authorization", "Bearer "+c.generic.config.LoopbackClientConfig.BearerToken)
	response := httptest.NewRecorder()
	if !answered(func() { c.untraced.ServeHTTP(response, req) }) {
		return false, nil
	}
	for line := range strings.Lines(response.Body.String()) {
		if check, ok := parseCheck(endpoint, strings.TrimSpace(line)); ok {
			checks = append(checks, check)
		}
	}
	return response.Code == http.StatusOK, checks
}

// answered serves a request, and reports whether it was not broken off. Upstream breaks one
// off by a panic, of which net/http makes a broken connection: when its context ends while
// the answer is being written, say.
func answered(serve func()) (whole bool) {
	process.Serve(func() {
		defer func() { _ = recover() }() // it was logged
		serve()
		whole = true
	})
	return whole
}

// parseCheck reads a line of upstream's verbose health report: "[+]ping ok" or
// "[-]poststarthook/x failed: reason withheld".
func parseCheck(endpoint, line string) (trace.Check, bool) {
	ok := strings.HasPrefix(line, "[+]")
	if !ok && !strings.HasPrefix(line, "[-]") {
		return trace.Check{}, false
	}
	name, reason, _ := strings.Cut(line[len("[+]"):], " ")
	return trace.Check{Endpoint: endpoint, Name: name, OK: ok, Reason: reason}, true
}
