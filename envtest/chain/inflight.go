package chain

import (
	"fmt"
	"slices"

	"snowglobe.test/envtest/fault"
)

// inFlight returns the requests that are being handled, without the long-running
// ones and those that are held.
func (t *requestTracer) inFlight(held []fault.Held) []string {
	waits := map[*tracedRequest]bool{}
	for _, h := range held {
		if traced, ok := h.Value(tracedRequestKey{}).(*tracedRequest); ok {
			waits[traced] = true
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var requests []string
	for r := range t.live {
		r.mu.Lock()
		if !r.longRunning && !waits[r] {
			requests = append(requests, fmt.Sprintf("%s %s is in flight", r.asked.Method, r.asked.URL.RequestURI()))
		}
		r.mu.Unlock()
	}
	slices.Sort(requests)
	return requests
}
