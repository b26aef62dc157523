package webhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"snowglobe.test/fakes/stub"
)

// Audit is the webhook that audit events are sent to. By itself it accepts all.
type Audit struct {
	server
	// Requests decides which batches of events are accepted and records the calls. The
	// answer says nothing; a batch is refused with an error.
	Requests *stub.Table[AuditRequest, AuditAnswer]
}

// AuditRequest is a batch of events.
type AuditRequest struct {
	HTTP   HTTP
	Events []auditv1.Event
}

// AuditAnswer is that a batch was accepted.
type AuditAnswer struct{}

// AuditRule says how some batches are answered.
type AuditRule = stub.Rule[AuditRequest, AuditAnswer]

// ServeAudit serves an audit webhook with a certificate for the hosts, each a DNS name
// or an IP; without any, for the host of the listener. The listener is the webhook's
// from now on, also if ServeAudit fails.
func ServeAudit(l net.Listener, hosts ...string) (*Audit, error) {
	a := &Audit{Requests: stub.NewTable(
		func(context.Context, AuditRequest) (AuditAnswer, error) { return AuditAnswer{}, nil })}
	return a, a.serve(l, auditv1.SchemeGroupVersion.WithKind("EventList"), auditv1.AddToScheme,
		"--audit-webhook-version=audit.k8s.io/v1", a.handle, hosts)
}

// Events returns the events of all batches that were accepted, in the order in which
// the batches came.
func (a *Audit) Events() []auditv1.Event {
	var events []auditv1.Event
	for _, call := range a.Requests.Calls() {
		if call.Done && call.Err == nil {
			events = append(events, call.Request.Events...)
		}
	}
	return events
}

// Kubeconfig is a file for --audit-webhook-config-file.
func (a *Audit) Kubeconfig() []byte { return a.kubeconfig() }

func (a *Audit) handle(w http.ResponseWriter, r *http.Request) {
	var list auditv1.EventList
	err := a.kind.read(r, &list)
	if err == nil {
		err = checkEvents(list.Items)
	}
	respond(w, r, a.Requests, AuditRequest{origin(r), list.Items}, err, func(AuditAnswer) any {
		return metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess}
	})
}

func checkEvents(events []auditv1.Event) error {
	if len(events) == 0 {
		return errors.New("the list has no events")
	}
	for i, event := range events {
		if event.AuditID == "" || event.Stage == "" || event.Level == "" {
			return fmt.Errorf("event %d has no auditID, stage or level: %q, %q, %q", i, event.AuditID, event.Stage, event.Level)
		}
	}
	return nil
}
