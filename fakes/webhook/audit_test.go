package webhook_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/audit"
	auditwebhook "k8s.io/apiserver/plugin/pkg/audit/webhook"

	"snowglobe.test/fakes/stub"
	"snowglobe.test/fakes/webhook"
)

func serveAudit(t *testing.T, p place) *webhook.Audit {
	t.Helper()
	fake, err := webhook.ServeAudit(p)
	require.NoError(t, err)
	stopAtEnd(t, fake)
	return fake
}

func newBackend(t *testing.T, p place, fake *webhook.Audit, retry wait.Backoff) audit.Backend {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, fake.Kubeconfig(), 0o600))
	backend, err := auditwebhook.NewBackend(file, auditv1.SchemeGroupVersion, retry, p.dial)
	require.NoError(t, err)
	return backend
}

func auditEvent(id string) *auditinternal.Event {
	return &auditinternal.Event{
		AuditID: types.UID(id), Level: auditinternal.LevelRequest, Stage: auditinternal.StageResponseComplete, Verb: "create",
		RequestObject: &runtime.Unknown{Raw: []byte(`{"a":1}`), ContentType: runtime.ContentTypeJSON},
	}
}

func ids(events []auditv1.Event) []string {
	var ids []string
	for _, event := range events {
		ids = append(ids, string(event.AuditID))
	}
	return ids
}

func TestAudit(t *testing.T) {
	everywhere(t, func(t *testing.T, p place) {
		fake := serveAudit(t, p)
		backend := newBackend(t, p, fake, once)
		assert.True(t, backend.ProcessEvents(auditEvent("1"), auditEvent("2")))
		for _, failure := range []error{errors.New("disk full"), stub.Status{Code: 503}, stub.ErrBreak} {
			undo := fake.Requests.Reply(webhook.AuditAnswer{}, failure)
			assert.False(t, backend.ProcessEvents(auditEvent("3")), failure)
			undo()
		}
		assert.True(t, backend.ProcessEvents(auditEvent("4")))
		assert.Equal(t, []string{"1", "2", "4"}, ids(fake.Events()), "those of batches that were accepted")
		event := fake.Requests.Calls()[0].Request.Events[0]
		assert.Equal(t, "create", event.Verb)
		assert.JSONEq(t, `{"a":1}`, string(event.RequestObject.Raw))
	})
}

// TestAuditIsSlow is about a backend that has 30 seconds, and tries again.
func TestAuditIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := memory()
		fake := serveAudit(t, p)
		backend := newBackend(t, p, fake, wait.Backoff{Duration: time.Second, Steps: 2})
		fake.Requests.Use(webhook.AuditRule{Name: "slow", Delay: 20 * time.Second})
		began := time.Now()
		assert.True(t, backend.ProcessEvents(auditEvent("1")))
		assert.Equal(t, 20*time.Second, time.Since(began))

		fake.Requests.Use(webhook.AuditRule{Name: "hang", Times: 1, Delay: time.Hour})
		began = time.Now()
		assert.True(t, backend.ProcessEvents(auditEvent("2")))
		assert.Equal(t, 51*time.Second, time.Since(began), "a timeout, a pause and a slow answer")
		assert.Equal(t, []string{"1", "2"}, ids(fake.Events()))
	})
}

func TestAuditRefuses(t *testing.T) {
	list := func(items string) string {
		return `{"apiVersion":"audit.k8s.io/v1","kind":"EventList","items":` + items + `}`
	}
	requests := append(badEnvelopes("audit.k8s.io/v1", "EventList", "--audit-webhook-version=audit.k8s.io/v1"),
		badRequest{name: "no events", body: list("[]"), want: "the list has no events"},
		badRequest{name: "no stage", body: list(`[{"auditID":"1","level":"Request"}]`), want: "event 0 has no auditID, stage or level"})
	everywhere(t, func(t *testing.T, p place) {
		fake := serveAudit(t, p)
		refuses(t, fake.URL(), rawClient(t, fake.CA(), p), requests, func() (int, error) {
			calls := fake.Requests.Calls()
			return len(calls), calls[len(calls)-1].Err
		})
		assert.Empty(t, fake.Events())
	})
}
