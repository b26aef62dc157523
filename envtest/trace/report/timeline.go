package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"snowglobe.test/envtest/trace"
)

// timeline is a run as lanes with events in them.
type timeline struct {
	groups []group
	lanes  []lane
	events []event // of each record, in the records' order
	bars   []bar
	links  []link
	folds  []fold
}

// group is a number of lanes that fold as one.
type group struct {
	name   string
	script bool // it is shown above all others, and does not fold
	folded bool // at first
	lanes  int
}

type lane struct {
	name  string
	short string // for where there is little room; empty for the name
	group int
}

// event is a record in its lane.
type event struct {
	look
	at   time.Duration
	seq  int64
	lane int
	tone trace.Tone
}

func newTimeline(recs []trace.Record) (*timeline, error) {
	t := &timeline{}
	sorted := newSorter(recs)
	keys := make([]laneKey, len(recs))
	for i, rec := range recs {
		look, err := describe(rec.Event)
		if err != nil {
			return nil, fmt.Errorf("record %d: %w", rec.Seq, err)
		}
		keys[i] = sorted.lane(rec)
		t.events = append(t.events, event{look: look, at: rec.Elapsed, seq: rec.Seq, tone: toneOf(rec.Event)})
	}
	t.place(keys)
	t.bars = newBars(recs, t.events)
	t.links = newLinks(recs, t.bars)
	t.folds = newFolds(recs, sorted)
	return t, nil
}

// place makes the lanes of the events, given the key of each.
func (t *timeline) place(keys []laneKey) {
	unique := slices.Clone(keys)
	slices.SortFunc(unique, compareLanes)
	unique = slices.Compact(unique)
	label := groupLabels(unique)
	numbers := map[laneKey]int{}
	for i, key := range unique {
		if i == 0 || key.groupKey != unique[i-1].groupKey {
			t.groups = append(t.groups, group{name: label(key.groupKey), script: key.section == script, folded: key.section.routine()})
		}
		in := len(t.groups) - 1
		t.groups[in].lanes++
		numbers[key] = len(t.lanes)
		t.lanes = append(t.lanes, lane{name: key.name, group: in})
	}
	t.shorten()
	for i, key := range keys {
		t.events[i].lane = numbers[key]
	}
}

// shorten gives the lanes of each group their short names.
func (t *timeline) shorten() {
	lanes := t.lanes
	for _, g := range t.groups {
		var names []string
		for _, l := range lanes[:g.lanes] {
			names = append(names, l.name)
		}
		for i, short := range shortNames(names) {
			lanes[i].short = short
		}
		lanes = lanes[g.lanes:]
	}
}

// toneOf is the tone of an event here, where a note may tell of a crash.
func toneOf(e trace.Event) trace.Tone {
	if note, ok := e.(trace.Note); ok && crashed(note) != "" {
		return trace.Bad
	}
	return trace.ToneOf(e)
}

// groupLabels returns the function that names groups. Names of control planes and
// servers appear only if there are several.
func groupLabels(keys []laneKey) func(groupKey) string {
	planes, servers, count := map[string]bool{}, map[serverKey]bool{}, map[string]int{}
	for _, key := range keys {
		if key.section != script {
			planes[key.plane] = true
		}
		if server := (serverKey{key.plane, key.server}); key.server != "" && !servers[server] {
			servers[server] = true
			count[key.plane]++ // of its servers
		}
	}
	script := sharedPrefix(planes)
	return func(key groupKey) string {
		words := []string{"", "", sectionNames[key.section]}
		if len(planes) > 1 {
			words[0] = strings.TrimPrefix(key.plane, script)
		}
		if count[key.plane] > 1 {
			words[1] = key.server
		}
		return joined(" · ", words...)
	}
}

// sharedPrefix is what control planes of one script have before their names: its own
// name and a slash. It is empty if they do not share it.
func sharedPrefix(planes map[string]bool) string {
	prefix, first := "", true
	for plane := range planes {
		own := plane[:strings.LastIndex(plane, "/")+1]
		if first {
			prefix, first = own, false
		} else if own != prefix {
			return ""
		}
	}
	return prefix
}

// lastCommand is the index of the script's last command, or of the last event if there
// is no script; -1 if there is no event.
func (t *timeline) lastCommand() int {
	for i, e := range slices.Backward(t.events) {
		if l := t.lanes[e.lane]; t.groups[l.group].script && l.name == noteLanes[command] {
			return i
		}
	}
	return len(t.events) - 1
}
