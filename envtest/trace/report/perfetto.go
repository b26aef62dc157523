package report

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"snowglobe.test/envtest/trace"
)

// traceEvent is an event of the trace event format. Times are in microseconds.
type traceEvent struct {
	Name     string         `json:"name"`
	Category string         `json:"cat,omitempty"`
	Phase    string         `json:"ph"`
	Time     float64        `json:"ts"`
	Duration *float64       `json:"dur,omitempty"`
	Process  int            `json:"pid"`
	Thread   int            `json:"tid"`
	ID       int            `json:"id,omitempty"`
	Scope    string         `json:"s,omitempty"`  // of an instant: t for its thread
	Binding  string         `json:"bp,omitempty"` // of the end of an arrow: e for the slice around it
	Color    string         `json:"cname,omitempty"`
	Args     map[string]any `json:"args,omitempty"`
}

// WritePerfetto writes a run in the trace event format, which ui.perfetto.dev and
// chrome://tracing open. Groups of lanes are processes, lanes are threads, bars are
// slices, what is held and what watches is asynchronous, and arrows lead from causes.
func WritePerfetto(w io.Writer, recs []trace.Record) error {
	t, err := newTimeline(recs)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	out := bufio.NewWriter(w)
	out.WriteString(`{"displayTimeUnit":"ns","traceEvents":[`)
	for i, e := range newExporter(t).export() {
		line, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("report: %w", err)
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteByte('\n')
		out.Write(line)
	}
	out.WriteString("\n]}\n")
	if err := out.Flush(); err != nil {
		return fmt.Errorf("report: writing trace events: %w", err)
	}
	return nil
}

// slice is a bar or a mark on its way out.
type slice struct {
	event, begins int // its main event, and the one at which it begins
	start, end    time.Duration
	bar, async    bool // an asynchronous one has no thread
	thread        int
}

// exporter turns a timeline into trace events.
type exporter struct {
	*timeline
	slices  []slice // in the order of their starts
	sliceOf []int   // of each event, the index of its slice
	linked  []bool  // of each event, whether an arrow begins or ends there
	threads []thread
	events  []traceEvent
}

// thread is one of the threads of a lane. A lane has several if its bars overlap.
type thread struct {
	lane, number int
	free         time.Duration // where its last slice ends
	moment       bool          // that slice has no length
}

// takes reports whether a slice fits behind the last one. Only slices without length
// may begin at the same moment as one without length.
func (t thread) takes(s slice) bool {
	return t.free < s.start || t.free == s.start && (!t.moment || s.start == s.end)
}

func newExporter(t *timeline) *exporter {
	x := &exporter{timeline: t, sliceOf: make([]int, len(t.events)), linked: make([]bool, len(t.events))}
	covered := make([]bool, len(t.events))
	for _, b := range t.bars {
		main := t.events[b.main]
		s := slice{event: b.main, begins: b.from, bar: true, start: max(0, t.events[b.from].at-b.before), end: t.events[b.to].at}
		// What waits for the test, or lasts until the test ends it, may overlap anything.
		s.async = main.tone == trace.Waiting && main.kind != "request" || main.kind == "request" && (b.from != b.main || b.open)
		x.slices = append(x.slices, s)
		covered[b.main], covered[b.from] = true, true
		if isRelease(main, b) {
			covered[b.to] = true
		}
	}
	for i, e := range t.events {
		if !covered[i] {
			x.slices = append(x.slices, slice{event: i, begins: i, start: e.at, end: e.at})
		}
	}
	slices.SortStableFunc(x.slices, func(a, b slice) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.begins, b.begins))
	})
	for i, s := range x.slices {
		x.sliceOf[s.event], x.sliceOf[s.begins] = i, i
	}
	for _, b := range t.bars {
		if isRelease(t.events[b.main], b) {
			x.sliceOf[b.to] = x.sliceOf[b.main]
		}
	}
	for _, l := range x.arrows() {
		x.linked[l.from], x.linked[l.to] = true, true
	}
	return x
}

// isRelease reports whether a bar is ended by an event of its own that is not its main
// event: the release of what was held.
func isRelease(main event, b bar) bool {
	return !b.open && b.main == b.from && b.to != b.main && (main.kind == "fault" || main.kind == "hook")
}

// arrows are the links that the format can show: from the slice of the cause to one
// that does not begin before it, both on threads.
func (x *exporter) arrows() []link {
	var all []link
	for _, l := range x.links {
		from, to := x.slices[x.sliceOf[l.from]], x.slices[x.sliceOf[l.to]]
		if l.how != ended && !from.async && !to.async && to.begins == l.to && from.start <= to.start && from.begins < to.begins {
			all = append(all, l)
		}
	}
	return all
}

// export returns the trace events: names, then slices in the order of their starts,
// each followed by the ends of its arrows. A reader that binds arrows to the last slice
// of a thread needs that order.
func (x *exporter) export() []traceEvent {
	x.assignThreads()
	x.names()
	from, to := map[int][]int{}, map[int][]int{}
	for i, l := range x.arrows() {
		from[x.sliceOf[l.from]] = append(from[x.sliceOf[l.from]], i+1)
		to[x.sliceOf[l.to]] = append(to[x.sliceOf[l.to]], i+1)
	}
	for i, s := range x.slices {
		e := x.base(s)
		switch {
		case s.async:
			x.async(i, e, s)
			continue
		case !s.bar && !x.linked[s.event]:
			e.Phase, e.Scope = "i", "t"
		default:
			length := micros(x.length(i))
			e.Phase, e.Duration = "X", &length
		}
		x.events = append(x.events, e)
		arrow := traceEvent{Name: "cause", Category: "cause", Time: e.Time, Process: e.Process, Thread: e.Thread}
		for _, id := range to[i] {
			arrow.Phase, arrow.ID, arrow.Binding = "f", id, "e"
			x.events = append(x.events, arrow)
		}
		for _, id := range from[i] {
			arrow.Phase, arrow.ID, arrow.Binding = "s", id, ""
			x.events = append(x.events, arrow)
		}
	}
	return x.events
}

func (x *exporter) base(s slice) traceEvent {
	main := x.timeline.events[s.event]
	e := traceEvent{
		Name: cmp.Or(main.label, main.kind), Category: main.kind, Time: micros(s.start), Args: map[string]any{"record": main.seq},
		Process: x.process(x.lanes[main.lane].group), Thread: x.threadID(s.thread),
	}
	for _, f := range main.fields {
		e.Args[f.key] = f.value
	}
	if main.tone == trace.Bad {
		e.Color = "terrible"
	}
	return e
}

// async writes both ends of an asynchronous slice. Its lane is in its name, as it is on
// no thread.
func (x *exporter) async(i int, e traceEvent, s slice) {
	e.Phase, e.ID = "b", i+1
	e.Name = x.lanes[x.timeline.events[s.event].lane].name + ": " + e.Name
	x.events = append(x.events, e)
	x.events = append(x.events, traceEvent{
		Name: e.Name, Category: e.Category, Phase: "e", Time: micros(s.end), Process: e.Process, Thread: e.Thread, ID: e.ID,
	})
}

// assignThreads puts each slice on the first thread of its lane that is free.
func (x *exporter) assignThreads() {
	ofLane := make([][]int, len(x.lanes))
	for i := range x.slices {
		s := &x.slices[i]
		lane := x.timeline.events[s.event].lane
		found := slices.IndexFunc(ofLane[lane], func(t int) bool { return s.async || x.threads[t].takes(*s) })
		if found < 0 {
			found = len(ofLane[lane])
			ofLane[lane] = append(ofLane[lane], len(x.threads))
			x.threads = append(x.threads, thread{lane: lane, number: found + 1})
		}
		s.thread = ofLane[lane][found]
		if !s.async {
			x.threads[s.thread].free, x.threads[s.thread].moment = s.end, s.start == s.end
		}
	}
}

// markLength is the length of a mark with arrows, which need a slice to begin at.
const markLength = time.Microsecond

// length is how long a slice on a thread is: that of a mark ends with the next slice.
func (x *exporter) length(i int) time.Duration {
	s := x.slices[i]
	if s.end > s.start {
		return s.end - s.start
	}
	for _, next := range x.slices[i+1:] {
		if next.start >= s.start+markLength {
			break
		}
		if next.start > s.start && next.thread == s.thread && !next.async {
			return next.start - s.start
		}
	}
	return markLength
}

// names are the metadata: the names of processes and threads, and their order.
func (x *exporter) names() {
	name := func(what string, process, thread int, key string, value any) {
		x.events = append(x.events, traceEvent{Name: what, Phase: "M", Process: process, Thread: thread, Args: map[string]any{key: value}})
	}
	for i, g := range x.groups {
		name("process_name", x.process(i), 0, "name", g.name)
		name("process_sort_index", x.process(i), 0, "sort_index", i)
	}
	for i, t := range x.threads {
		text := x.lanes[t.lane].name
		if t.number > 1 {
			text += fmt.Sprintf(" (%d)", t.number)
		}
		process := x.process(x.lanes[t.lane].group)
		name("thread_name", process, x.threadID(i), "name", text)
		name("thread_sort_index", process, x.threadID(i), "sort_index", t.lane)
	}
}

// process is the number of a group's process.
func (x *exporter) process(group int) int { return group + 1 }

// threadID is the number of a thread. None is that of a process, which would make it
// the main thread of that.
func (x *exporter) threadID(thread int) int { return len(x.groups) + 1 + thread }

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
