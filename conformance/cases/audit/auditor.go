package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/onsi/gomega"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
)

// auditor is a webhook backend, and the control plane whose events it gets.
type auditor struct {
	*suite.T
	cp *envtest.ControlPlane

	mu      sync.Mutex
	sick    bool // refuses all
	batches [][]auditv1.Event
}

// blocking makes each request wait until its events have been sent.
const blocking = "--audit-webhook-mode=blocking"

// launch starts a control plane with an audit policy.
func launch(ctx context.Context, t *suite.T, policy string, flags ...string) *auditor {
	a := &auditor{}
	path := t.File("policy.yaml", []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\n"+policy))
	flags = append(flags, "--audit-policy-file="+path, "--audit-webhook-initial-backoff=1ms")
	a.cp, a.T = t.Launch(ctx, envtest.WithWebhookFlag("audit-webhook-config-file", a), envtest.WithFlags(flags...))
	return a
}

// ServeHTTP implements http.Handler.
func (a *auditor) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var list auditv1.EventList
	if err := json.NewDecoder(req.Body).Decode(&list); err != nil {
		http.Error(w, fmt.Sprintf("not a list of events: %v", err), http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sick {
		http.Error(w, "the auditor is sick", http.StatusForbidden) // which is not retried
		return
	}
	a.batches = append(a.batches, list.Items)
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte("{}"))
}

// fall makes the backend refuse all batches from now on, or take them again.
func (a *auditor) fall(sick bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sick = sick
}

// taken returns the batches so far.
func (a *auditor) taken() [][]auditv1.Event {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.batches)
}

// about returns the events about requests whose URI contains a text, in the order in which
// they came.
func (a *auditor) about(uri string) []auditv1.Event {
	var found []auditv1.Event
	for _, event := range slices.Concat(a.taken()...) {
		if strings.Contains(event.RequestURI, uri) {
			found = append(found, event)
		}
	}
	return found
}

// one returns the only event of a URI.
func (a *auditor) one(uri string) auditv1.Event {
	events := a.about(uri)
	a.Expect(told(events)).To(gomega.HaveLen(1), "events about %s", uri)
	return events[0]
}

// told says of each event its stage, level and verb.
func told(events []auditv1.Event) []string {
	lines := []string{}
	for _, event := range events {
		lines = append(lines, fmt.Sprint(event.Stage, " ", event.Level, " ", event.Verb))
	}
	return lines
}
