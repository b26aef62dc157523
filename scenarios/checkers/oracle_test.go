package checkers

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"snowglobe.test/internal/sample"
)

// oracle decides by trying everything whether a few operations on one object have an
// order. It knows nothing of what the check knows to make the search short.
type oracle struct {
	ops    []Operation
	open   bool
	states map[string]bool // those that lead nowhere
}

// concrete is the state of a store with one object. A revision or UID of 0 is one
// that no client has been told yet.
type concrete struct {
	known    bool // false is the beginning, which may be anything
	there    bool
	revision int64
	least    int64 // the newest revision that was told
	uid      string
}

func (c concrete) changed(there bool, revision int64, uid string) concrete {
	return concrete{known: true, there: there, revision: revision, least: max(c.least, c.revision), uid: uid}
}

// learn makes a revision and a UID known, if they can be those of the state.
func (c concrete) learn(revision int64, uid string) (concrete, bool) {
	if !c.there || c.uid != "" && c.uid != uid {
		return c, false
	}
	if c.revision == 0 {
		c.revision, c.uid = revision, uid
		return c, revision > c.least
	}
	c.uid = uid
	return c, c.revision == revision
}

// beginnings are the states that may have been before everything, but for what is
// learned of them.
func beginnings(s concrete) []concrete {
	if s.known {
		return []concrete{s}
	}
	return []concrete{{known: true}, {known: true, there: true}}
}

// holds tries each order of what is left, in a state.
func (o *oracle) holds(left int, s concrete, hidden int) bool {
	name := fmt.Sprint(left, s, hidden)
	if o.states[name] {
		return false
	}
	o.states[name] = true
	finished := true
	for i := range o.ops {
		finished = finished && (left&(1<<i) == 0 || o.ops[i].Code == 0)
	}
	if finished {
		return true
	}
	for i, op := range o.ops {
		if left&(1<<i) == 0 || !o.first(left, op) {
			continue
		}
		for _, before := range beginnings(s) {
			for _, after := range o.do(before, op) {
				if o.holds(left&^(1<<i), after, 0) {
					return true
				}
			}
		}
	}
	if o.open && hidden < 2 {
		for _, before := range beginnings(s) {
			if o.holds(left, before.changed(true, 0, map[bool]string{true: before.uid}[before.there]), hidden+1) || before.there && o.holds(left, before.changed(false, 0, ""), hidden+1) {
				return true
			}
		}
	}
	return false
}

// first reports whether nothing that is left was over before an operation began.
func (o *oracle) first(left int, op Operation) bool {
	for i, other := range o.ops {
		if left&(1<<i) != 0 && other.Code != 0 && other.End <= op.Start {
			return false
		}
	}
	return true
}

// do returns the states after an operation with the answer that it has got.
func (o *oracle) do(s concrete, op Operation) (after []concrete) {
	add := func(c concrete, ok bool) {
		if ok {
			after = append(after, c)
		}
	}
	if op.Code == 0 { // the outcome is unknown
		return o.unknown(s, op)
	}
	var told Object
	if len(op.Objects) == 1 {
		told = op.Objects[0]
	}
	switch {
	case op.Code == 404:
		add(s, !s.there)
	case op.Method == "GET":
		add(s.learn(told.Revision, told.UID))
	case op.Method == "POST" && op.Code == 409:
		add(s, s.there)
	case op.Method == "POST":
		add(s.changed(true, told.Revision, told.UID), !s.there && told.Revision > max(s.least, s.revision))
	case op.Method == "PUT" && op.Code == 409:
		add(s, !s.there || s.revision != op.Sent.Revision)
	case op.Method == "PUT":
		before, ok := s, s.there
		if op.Sent.Revision > 0 {
			before, ok = s.learn(op.Sent.Revision, told.UID)
		}
		ok = ok && (before.uid == "" || before.uid == told.UID)
		add(before.changed(true, told.Revision, told.UID), ok && told.Revision > max(before.least, before.revision))
		same, fits := before.learn(told.Revision, told.UID) // it has changed nothing
		add(same, ok && fits)
	case op.Method == "DELETE":
		ok := s.there && (s.uid == "" || s.uid == op.About.UID)
		add(s.changed(false, 0, ""), ok)
	}
	return after
}

// unknown returns the states after an operation that was or was not done.
func (o *oracle) unknown(s concrete, op Operation) []concrete {
	after := []concrete{s}
	if s.there && s.revision == 0 && op.Sent.Revision > s.least { // it may be the one that is required
		s.revision = op.Sent.Revision
	}
	switch {
	case op.Method == "POST" && !s.there:
		after = append(after, s.changed(true, 0, ""))
	case op.Method == "DELETE" && s.there:
		after = append(after, s.changed(false, 0, ""), s.changed(true, 0, s.uid))
	case op.Method == "PUT" && s.there && (op.Sent.Revision == 0 || op.Sent.Revision == s.revision):
		after = append(after, s.changed(true, 0, s.uid), s.changed(false, 0, ""))
	case op.Method == "PUT" && !s.there && op.Sent.Revision == 0:
		after = append(after, s.changed(true, 0, ""))
	}
	return after
}

// anyHistory returns a few operations with answers that may or may not be right.
func anyHistory(r *rand.Rand) *History {
	h := &History{Closed: r.IntN(2) == 0}
	const uri = "/api/v1/namespaces/default/configmaps"
	for range 2 + r.IntN(5) {
		start := int64(r.IntN(8))
		op := Operation{Session: "a", URI: uri + "/x", Start: start, End: start + 1 + int64(r.IntN(4))}
		told := Object{Namespace: "default", Name: "x", UID: []string{"u1", "u2"}[r.IntN(4)/3], Revision: int64(1+r.IntN(4)) * 10}
		missing := r.IntN(3) == 0
		op.Code, op.Objects = 200, []Object{told}
		switch r.IntN(5) {
		case 0, 1:
			op.Method = "GET"
		case 2:
			op.Method, op.URI, op.Code, op.Sent.Name = "POST", uri, 201, "x"
			if r.IntN(3) == 0 {
				op.Code, op.Reason, op.Objects, op.About = 409, "AlreadyExists", nil, Object{Name: "x"}
			}
			missing = false
		case 3:
			op.Method = "PUT"
			if r.IntN(3) > 0 {
				op.Sent.Revision = int64(1+r.IntN(4)) * 10
			}
			if op.Sent.Revision > 0 && r.IntN(3) == 0 {
				op.Code, op.Reason, op.Objects, op.About, missing = 409, "Conflict", nil, Object{Name: "x"}, false
			}
		default:
			op.Method, op.Objects, op.About = "DELETE", nil, Object{Kind: "configmaps", Name: "x", UID: told.UID}
		}
		if missing {
			op.Code, op.Reason, op.Objects, op.About = 404, "NotFound", nil, Object{Kind: "configmaps", Name: "x"}
		}
		if op.Method != "GET" && r.IntN(3) == 0 {
			op.Code, op.Reason, op.Objects, op.About, op.Err = 0, "", nil, Object{}, "timeout"
		}
		h.Operations = append(h.Operations, op)
	}
	return h
}

var tiny = flag.Int("tiny", 10_000, "how many histories TestOracle tries")

// TestOracle compares the check with one that tries everything.
func TestOracle(t *testing.T) {
	if sample.All() {
		*tiny = max(*tiny, 60_000)
	}
	r := rand.New(rand.NewPCG(3, 4))
	verdicts := map[string]int{}
	for range *tiny {
		h := anyHistory(r)
		o := oracle{ops: h.Operations, open: !h.Closed, states: map[string]bool{}}
		want := Broken
		if o.holds(1<<len(o.ops)-1, concrete{}, 0) {
			want = Holds
		}
		result := Linearizability{}.Check(t.Context(), h)
		if result.Judged == 0 { // nothing but requests without an answer
			continue
		}
		verdicts[fmt.Sprint(h.Closed, want)]++
		if got := result.Verdict(); got != want {
			var text strings.Builder
			_ = h.Write(&text)
			t.Fatalf("the check says %v, and trying everything %v:\n%s\n%v", got, want, text.String(), result.Findings)
		}
	}
	for _, name := range []string{"true holds", "true broken", "false holds", "false broken"} {
		assert.GreaterOrEqual(t, verdicts[name], *tiny/30, "only %d histories are %s", verdicts[name], name)
	}
	t.Log(verdicts)
}
