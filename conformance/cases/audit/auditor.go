package audit

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/onsi/gomega"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
	"snowglobe.test/fakes/stub"
	"snowglobe.test/fakes/webhook"
)

// auditor is a webhook backend, and the control plane whose events it gets.
type auditor struct {
	*suite.T
	cp      *envtest.ControlPlane
	backend *webhook.Audit
}

// blocking makes each request wait until its events have been sent.
const blocking = "--audit-webhook-mode=blocking"

// launch starts a control plane with an audit policy.
func launch(ctx context.Context, t *suite.T, policy string, flags ...string) *auditor {
	backend := suite.Serve(t, "audit", webhook.ServeAudit)
	path := t.File("policy.yaml", []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\n"+policy))
	flags = append(flags, "--audit-policy-file="+path, "--audit-webhook-initial-backoff=1ms",
		"--audit-webhook-config-file="+t.File("audit.kubeconfig", backend.Kubeconfig()))
	cp, beside := t.Launch(ctx, envtest.WithFlags(flags...))
	return &auditor{beside, cp, backend}
}

// fall makes the backend refuse all batches, which is not retried, until rise is called.
func (a *auditor) fall() (rise func()) {
	return a.backend.Requests.Reply(webhook.AuditAnswer{}, stub.Status{Code: http.StatusForbidden})
}

// taken returns the batches so far.
func (a *auditor) taken() (batches [][]auditv1.Event) {
	for _, call := range a.backend.Requests.Calls() {
		if call.Done && call.Err == nil {
			batches = append(batches, call.Request.Events)
		}
	}
	return batches
}

// about returns the events about requests whose URI contains a text, in the order in which
// they came.
func (a *auditor) about(uri string) []auditv1.Event {
	var found []auditv1.Event
	for _, event := range a.backend.Events() {
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
