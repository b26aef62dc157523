package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/trace"
)

func exported(t *testing.T, recs []trace.Record) []traceEvent {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, WritePerfetto(&out, recs))
	var file struct {
		DisplayTimeUnit string
		TraceEvents     []traceEvent
	}
	dec := json.NewDecoder(&out)
	dec.DisallowUnknownFields()
	require.NoError(t, dec.Decode(&file))
	assert.Equal(t, "ns", file.DisplayTimeUnit)
	return file.TraceEvents
}

// formatRules checks trace events by the rules of the format, and by those of readers
// that take events in the order of time and keep a stack of slices for each thread.
type formatRules struct {
	complaints []string
	processes  map[int]bool
	threads    map[int]int          // the process of each
	stacks     map[int][]traceEvent // the open slices of each thread
	arrows     map[int]float64      // the beginning of each
	async      map[string]float64
}

func brokenRules(events []traceEvent) []string {
	r := formatRules{processes: map[int]bool{}, threads: map[int]int{}, stacks: map[int][]traceEvent{}, arrows: map[int]float64{}, async: map[string]float64{}}
	for i, e := range events {
		r.check(i, e)
	}
	for key := range r.async {
		r.complaints = append(r.complaints, "never ends: "+key)
	}
	return r.complaints
}

func (r *formatRules) check(i int, e traceEvent) {
	expect := func(ok bool, format string, args ...any) {
		if !ok {
			r.complaints = append(r.complaints, fmt.Sprintf("event %d (%s %s): %s", i, e.Phase, e.Name, fmt.Sprintf(format, args...)))
		}
	}
	if e.Phase == "M" {
		if e.Name == "process_name" {
			r.processes[e.Process] = true
		}
		if e.Name == "thread_name" {
			_, twice := r.threads[e.Thread]
			expect(!twice, "a thread is named twice")
			r.threads[e.Thread] = e.Process
		}
		return
	}
	expect(e.Name != "", "no name")
	expect(e.Time >= 0, "negative time")
	expect(r.processes[e.Process], "no such process")
	process, ok := r.threads[e.Thread]
	expect(ok && process == e.Process && e.Thread != e.Process, "no such thread")
	expect((e.Duration != nil) == (e.Phase == "X"), "has a duration if and only if it is complete")
	if e.Duration == nil {
		e.Duration = new(float64)
	}
	asyncKey := fmt.Sprint(e.Category, e.ID, e.Name)
	switch e.Phase {
	case "X":
		expect(*e.Duration > 0, "no duration")
		expect(r.push(e), "neither inside nor outside of the slice before")
	case "i":
		expect(e.Scope == "t", "no scope")
	case "b":
		r.async[asyncKey] = e.Time
	case "e":
		began, ok := r.async[asyncKey]
		expect(ok && began <= e.Time, "ends what has not begun")
		delete(r.async, asyncKey)
	case "s":
		_, twice := r.arrows[e.ID]
		expect(!twice, "an arrow begins twice")
		expect(r.inside(e), "an arrow begins in no slice")
		r.arrows[e.ID] = e.Time
	case "f":
		began, ok := r.arrows[e.ID]
		expect(ok && began <= e.Time, "an arrow ends before it begins")
		expect(r.inside(e) && e.Binding == "e", "an arrow ends in no slice")
	default:
		expect(false, "unknown phase")
	}
}

// push puts a slice on the stack of its thread, and reports whether it nests.
func (r *formatRules) push(e traceEvent) bool {
	stack := r.stacks[e.Thread]
	for len(stack) > 0 && stack[len(stack)-1].Time+*stack[len(stack)-1].Duration <= e.Time+1e-6 {
		stack = stack[:len(stack)-1]
	}
	r.stacks[e.Thread] = append(stack, e)
	if len(stack) == 0 {
		return true
	}
	top := stack[len(stack)-1]
	return top.Time <= e.Time && e.Time+*e.Duration <= top.Time+*top.Duration+1e-6
}

// inside reports whether the last slice of an event's thread is around its time.
func (r *formatRules) inside(e traceEvent) bool {
	stack := r.stacks[e.Thread]
	if len(stack) == 0 {
		return false
	}
	top := stack[len(stack)-1]
	return top.Time <= e.Time && e.Time < top.Time+*top.Duration
}

func TestPerfettoObeysTheFormat(t *testing.T) {
	for name, recs := range map[string][]trace.Record{"story": story(), "synthetic": synthetic(3000), "hostile": hostileRun().Records, "none": nil} {
		events := exported(t, recs)
		assert.Empty(t, brokenRules(events), name)
	}
}

// The rules notice what is wrong.
func TestPerfettoRulesComplain(t *testing.T) {
	for want, tamper := range map[string]func(e *traceEvent){
		"neither inside": func(e *traceEvent) {
			if e.Phase == "X" && e.Category == "turn" {
				longer := *e.Duration * 1000
				e.Duration = &longer
			}
		},
		"an arrow ends in no slice": func(e *traceEvent) {
			if e.Phase == "f" {
				e.Time += 1e9
			}
		},
		"an arrow ends before": func(e *traceEvent) {
			if e.Phase == "f" {
				e.ID++
			}
		},
		"no such thread":        func(e *traceEvent) { e.Thread-- },
		"no such process":       func(e *traceEvent) { e.Process += 100 },
		"ends what has not":     func(e *traceEvent) { e.Category = e.Phase },
		"negative time":         func(e *traceEvent) { e.Time = -1 },
		"has a duration if and": func(e *traceEvent) { e.Duration = nil },
		"no scope":              func(e *traceEvent) { e.Scope = "" },
	} {
		events := exported(t, slicesOf(story(), synthetic(300)))
		for i := range events {
			if events[i].Phase != "M" {
				tamper(&events[i])
			}
		}
		assert.Contains(t, fmt.Sprint(brokenRules(events)), want)
	}
}

// slicesOf puts one run behind another.
func slicesOf(a, b []trace.Record) []trace.Record {
	for i := range b {
		b[i].Elapsed += time.Minute
	}
	return append(a, b...)
}

func TestPerfettoShows(t *testing.T) {
	names, phases := map[string]string{}, map[string]int{}
	var thread = map[int]string{}
	for _, e := range exported(t, story()) {
		phases[e.Phase]++
		if e.Name == "thread_name" {
			thread[e.Thread] = e.Args["name"].(string)
			continue
		}
		names[e.Category+" "+e.Name] = fmt.Sprintf("%s %v %s", e.Phase, e.Time, thread[e.Thread])
	}
	for name, want := range map[string]string{
		"note It snows.":                 "X 0 phases",
		"note a remark":                  "i 0 notes",
		"stage generic":                  "X 1 stages",
		"hook crd-informer-synced: held": "e 1005 crd-informer-synced",
		"hook failed: out of snow":       "X 1005 crd-informer-synced",
		"fault cache/configmaps: freeze event default/snow":            "e 2000 cache/configmaps",
		"request 201 patch configmaps/snow":                            "X 1021 admin requests",
		"request admin watch /api/v1/configmaps: 200 watch configmaps": "e 2004 admin watch /api/v1/configmaps",
		"turn 2 before default/snow":                                   "X 1023 store/put",
		"signal HasBeenReady":                                          "i 1012 signals",
	} {
		assert.Equal(t, want, names[name], name)
	}
	for _, phase := range []string{"M", "X", "i", "b", "e", "s", "f"} {
		assert.Positive(t, phases[phase], phase)
	}
	assert.Equal(t, phases["s"], phases["f"])
}
