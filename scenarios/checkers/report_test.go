package checkers_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/scenarios/checkers"
)

// A check that has given up says so: it is not a pass.
func TestUnknown(t *testing.T) {
	h := newWorld(1).run(400)
	report := checkers.Check(t.Context(), h, checkers.Linearizability{MaxSteps: 3})
	require.Equal(t, checkers.Unknown, report.Verdict())
	assert.Contains(t, report.Findings()[0].What, "in 3 steps")

	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	for _, c := range checkers.All() {
		result := c.Check(ctx, h)
		assert.Equal(t, checkers.Unknown, result.Verdict(), c.Name())
		require.NotEmpty(t, result.Findings, c.Name())
		assert.Contains(t, result.Findings[0].What, "enough", c.Name())
	}
}

// Nothing to judge is not a pass either, for a check that is asked alone.
func TestNothingToJudge(t *testing.T) {
	h := &checkers.History{Operations: []checkers.Operation{{Method: "GET", URI: snowMap, Start: 1, End: 2, Code: 200,
		Objects: []checkers.Object{{Namespace: "default", Name: "snow", UID: "u1", Revision: 5}}}}}
	assert.Equal(t, checkers.Unknown, checkers.WatchGuarantees{}.Check(t.Context(), h).Verdict())
	assert.Equal(t, checkers.Holds, checkers.Check(t.Context(), h).Verdict(), "others had")
	assert.Equal(t, checkers.Unknown, checkers.Check(t.Context(), &checkers.History{}).Verdict())
}

// One fault may have very many findings.
func TestManyFindings(t *testing.T) {
	h := &checkers.History{}
	for i := range int64(200) {
		h.Operations = append(h.Operations, checkers.Operation{Method: "GET", URI: "/api/v1/pods?resourceVersion=9", Start: i, End: i + 1, Code: 200, Revision: 5})
	}
	result := checkers.MonotonicReads{}.Check(t.Context(), h)
	assert.Len(t, result.Findings, 50)
	assert.Equal(t, 150, result.More)
	assert.Contains(t, checkers.Report{Results: []checkers.Result{result}}.String(), "(and 150 more)")
}

// What comes from outside is one line of the report, whatever it is.
func TestEvidence(t *testing.T) {
	op := checkers.Operation{Session: "a", Server: "apiserver-0", Method: "DELETE", URI: "/api/v1/namespaces/default/configmaps/snow", Start: 1, End: 3,
		At: 3 * time.Second, Took: time.Second, Sent: checkers.Object{Revision: 5, UID: "u1"}, DryRun: true, Code: 409, Reason: "Conflict\x1b[31m\n"}
	assert.Equal(t, "[1..3] (2s)  a at apiserver-0 asked to delete configmaps default/snow if at revision 5 if its UID is u1 as a dry run: 409 Conflict [31m ", op.String()+" ")
	op = checkers.Operation{Method: "GET", URI: "/readyz", Server: checkers.SomeServer, Start: 1, Err: "reset"}
	assert.Equal(t, "[1..]  a client at some server asked to GET /readyz: no answer is known: reset", op.String())
	assert.Equal(t, "/registry/x deleted at revision 7", checkers.Write{Key: "/registry/x", Revision: 7, Deleted: true}.String())
	assert.Equal(t, "ERROR Expired", checkers.Event{Type: "ERROR", Reason: "Expired"}.String())
	assert.Equal(t, "watch of pods without a resourceVersion", checkers.Watch{URI: "/api/v1/pods?watch=true"}.String())
}
