package audit

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/conformance/suite"
)

var backendCases = []suite.Case{
	{ID: "S19/batches-are-of-their-size", Needs: launched, Test: batchesAreOfTheirSize,
		Source: "k8s.io/apiserver/plugin/pkg/audit/buffered/buffered.go, collectEvents and Shutdown",
		Promise: "In batch mode events are sent when a batch is full, in the order in which they happened and no " +
			"sooner, and what is left when the server stops."},
	{ID: "S19/failing-backend-is-no-hindrance", Failure: true, Needs: launched, Test: failingBackendIsNoHindrance,
		Source: "k8s.io/apiserver/plugin/pkg/audit/buffered/buffered.go, ProcessEvents; " +
			"k8s.io/apiserver/pkg/server/options/audit.go, ignoreErrors in mode blocking",
		Promise: "In the mode blocking a request whose events the backend does not take is served all the same."},
	{ID: "S19/strict-mode-serves-nothing-untold", Failure: true, Needs: launched, Test: strictModeServesNothingUntold,
		Source: "k8s.io/apiserver/pkg/endpoints/filters/audit.go, WithAudit; " +
			"k8s.io/apiserver/pkg/server/options/audit.go, ModeBlockingStrict",
		Promise: "In the mode blocking-strict a request of which the backend does not hear when it is received is " +
			"answered 500 and has no effect; one that is not to be told of is served."},
}

func batchesAreOfTheirSize(ctx context.Context, t *suite.T) {
	a := launch(ctx, t, `
omitStages: [RequestReceived]
rules:
- {level: Metadata, verbs: [get], resources: [{group: "", resources: [configmaps]}]}
`, "--audit-webhook-mode=batch", "--audit-webhook-batch-max-size=3", "--audit-webhook-batch-max-wait=1h",
		"--audit-webhook-batch-throttle-enable=false")
	const path = "/api/v1/namespaces/default/configmaps/"
	for i := range 7 {
		a.Answered(ctx, fmt.Sprint(path, "n", i), http.StatusNotFound)
	}
	a.Eventually(ctx, a.sizes).Should(gomega.ConsistOf(3, 3), "the batches of seven events")
	a.Must(a.cp.Stop(ctx), "stop the server")
	a.Expect(a.sizes()).To(gomega.ConsistOf(3, 3, 1), "with those that were left")
	for _, batch := range a.taken() {
		for i := range batch[1:] {
			a.Expect(strings.Compare(batch[i].RequestURI, batch[i+1].RequestURI)).
				To(gomega.Equal(-1), "the order of events")
		}
	}
}

// sizes of the batches so far, which may come in any order.
func (a *auditor) sizes() []int {
	var sizes []int
	for _, batch := range a.taken() {
		sizes = append(sizes, len(batch))
	}
	return sizes
}

func failingBackendIsNoHindrance(ctx context.Context, t *suite.T) {
	a := launch(ctx, t, everything, blocking)
	maps := a.ConfigMaps(ctx)
	maps.Make(ctx, "before")
	a.Expect(a.about("/configmaps")).NotTo(gomega.BeEmpty(), "before")
	a.fall()
	maps.Make(ctx, "after")
	maps.Read(ctx, "after")
	a.Expect(a.about("/configmaps/after")).To(gomega.BeEmpty(), "what the backend did not take")
}

func strictModeServesNothingUntold(ctx context.Context, t *suite.T) {
	a := launch(ctx, t, `
rules:
- {level: Metadata, resources: [{group: "", resources: [configmaps]}]}
`, "--audit-webhook-mode=blocking-strict")
	maps := a.ConfigMaps(ctx)
	maps.Make(ctx, "before")
	rise := a.fall()
	got := a.AnsweredTo(ctx,
		suite.Request{Method: http.MethodPost, Path: maps.Path(), Body: maps.Object("after", "first")},
		http.StatusInternalServerError)
	a.Expect(string(got.Body)).To(gomega.ContainSubstring("failed to store audit event"), "%s", got)
	a.Answered(ctx, "/api/v1/namespaces/default/secrets/a", http.StatusNotFound)
	rise()
	_, err := maps.Get(ctx, "after", metav1.GetOptions{})
	a.Expect(err).To(suite.BeStatus(suite.NotFound), "it had no effect")
}
