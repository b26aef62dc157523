package report

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/trace"
)

func TestLinks(t *testing.T) {
	tl, err := newTimeline(story())
	require.NoError(t, err)
	var got []string
	for _, l := range tl.links {
		from, to := tl.events[l.from], tl.events[l.to]
		got = append(got, fmt.Sprintf("%s %s, %s, %s %s", from.kind, from.label, relationNames[l.how][0], to.kind, to.label))
	}
	slices.Sort(got)
	assert.Equal(t, []string{
		"fault freeze event default/snow, ended by, fault freeze event default/snow",
		"hook held, ended by, hook released",
		"hook starts, ended by, hook failed: out of snow",
		"request 201 patch configmaps/snow, answered as, answer 201 PATCH configmaps/snow",
		"request start watch configmaps, ended by, request 200 watch configmaps",
		"stage generic, ended by, stage generic",
		"turn 1 before default/snow, led to turn, turn 2 before default/snow",
		"turn 2 before default/snow, led to turn, turn 3 after default/snow",
		"turn 2 before default/snow, led to turn, turn 4 before default/snow",
		"turn 2 before default/snow, let happen, write create default/snow @7",
		"turn 2 before default/snow, let happen, write update v1.apps @8",
		"turn 3 after default/snow, let happen, answer 201 PATCH configmaps/snow",
		"turn 3 after default/snow, let happen, request 201 patch configmaps/snow",
		"turn 4 before default/snow, let happen, fault freeze event default/snow",
		"write create default/snow @7, reported in answer, answer 201 PATCH configmaps/snow",
		"write create default/snow @7, seen by watch, watch ADDED default/snow @7",
	}, got)
}

// Links and bars lead to events that exist, and effects come after causes, also if the
// oldest records have been dropped.
func TestLinksLeadToEvents(t *testing.T) {
	for dropped := range 40 {
		for _, recs := range [][]trace.Record{story(), synthetic(400)} {
			recs = recs[min(dropped, len(recs)):]
			tl, err := newTimeline(recs)
			require.NoError(t, err)
			for _, l := range tl.links {
				require.True(t, 0 <= l.from && l.from < l.to && l.to < len(recs), "%+v", l)
			}
			for _, b := range tl.bars {
				require.True(t, 0 <= b.from && b.from <= b.to && b.to < len(recs), "%+v", b)
				require.True(t, b.main == b.from || b.main == b.to, "%+v", b)
			}
		}
	}
}

func TestBars(t *testing.T) {
	tl, err := newTimeline(story())
	require.NoError(t, err)
	var got []string
	for _, b := range tl.bars {
		text := fmt.Sprintf("%s %s: %v to %v", tl.events[b.main].kind, tl.events[b.main].label, tl.events[b.from].at-b.before, tl.events[b.to].at)
		if b.open {
			text += ", open"
		}
		got = append(got, text)
	}
	assert.Equal(t, []string{
		"note It snows.: 0s to 2.004ms, open",
		"note start: 0s to 1.02ms",
		"stage generic: 1µs to 2µs",
		"hook held: 3µs to 1.005ms",
		"check ok: 4µs to 2.004ms, open",
		"check failing: 4µs to 1.011ms",
		"hook failed: out of snow: 1.005ms to 1.01ms",
		"check ok: 1.011ms to 2.004ms, open",
		"note apply snow.yaml: 1.02ms to 2.004ms, open",
		"request 200 watch configmaps: 1.021ms to 2.004ms",
		"request 201 patch configmaps/snow: 1.021ms to 1.024ms",
		"fault freeze event default/snow: 1.025ms to 2ms",
		"request 503 list nodes: 2.003ms to 2.003ms",
	}, got)
}

// What is still held ends with its control plane, not with the run.
func TestOpenBarsEndWithTheirControlPlane(t *testing.T) {
	held := trace.Hook{Kind: trace.PostStart, Name: "h", Phase: trace.Held}
	tl, err := newTimeline([]trace.Record{
		{Seq: 1, ControlPlane: "a", Event: held},
		{Seq: 2, ControlPlane: "a", Elapsed: time.Second, Event: trace.Signal{Name: "last"}},
		{Seq: 3, ControlPlane: "b", Elapsed: time.Hour, Event: trace.Signal{Name: "other"}},
	})
	require.NoError(t, err)
	assert.Equal(t, []bar{{main: 0, from: 0, to: 1, open: true}}, tl.bars)
}

// Of operations that are alike, the one that began first ends first.
func TestBarsThatAreAlike(t *testing.T) {
	request := func(p trace.Phase) trace.Event {
		return trace.Request{Method: "GET", URI: "/x?watch=1", Verb: "watch", User: "u", Phase: p}
	}
	tl, err := newTimeline([]trace.Record{
		{Seq: 1, Event: request(trace.Start)}, {Seq: 2, Event: request(trace.Start)},
		{Seq: 3, Event: request(trace.End)}, {Seq: 4, Event: request(trace.End)}, {Seq: 5, Event: request(trace.End)},
	})
	require.NoError(t, err)
	assert.Equal(t, []bar{{main: 2, from: 0, to: 2}, {main: 3, from: 1, to: 3}, {main: 4, from: 4, to: 4}}, tl.bars)
}
