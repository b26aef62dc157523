package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"snowglobe.test/envtest/trace"
)

// pageData is the data block of the page. page/model.js reads it.
type pageData struct {
	Kinds     []string    `json:"kinds"`
	Tones     []string    `json:"tones"`
	Relations [][2]string `json:"relations"` // as the cause and as the effect sees it
	Runs      []runData   `json:"runs"`
	// Divergence is where two runs diverge; absent if they do not.
	Divergence *divergenceData `json:"divergence,omitempty"`
}

type divergenceData struct {
	Words string `json:"words"`
	// Events has of each run the first event that the other does not have there; -1 if
	// the run ends there.
	Events [2]int `json:"events"`
}

type runData struct {
	Name    string      `json:"name"`
	Strings []string    `json:"strings"` // that events refer to by their index
	Groups  []groupData `json:"groups"`
	// Events are of the form nanoseconds since the last event, sequence numbers since
	// the last event, lane, kind, tone, label, and then keys and values in turn.
	Events [][]int64 `json:"events"`
	// Bars has for each bar its main event, the event at which it begins or, if less
	// than 0, one less than minus the nanoseconds before its main event, the event at
	// which it ends, and 1 if nothing has ended it.
	Bars  []int64    `json:"bars"`
	Folds []foldData `json:"folds,omitempty"`
	// Links has for each link its two events and its relation.
	Links  []int       `json:"links"`
	Failed *failedData `json:"failed,omitempty"`
}

type groupData struct {
	Name   string   `json:"name"`
	Script bool     `json:"script,omitempty"`
	Folded bool     `json:"folded,omitempty"`
	Lanes  []string `json:"lanes"`
	// Short has for each lane its name where there is little room; empty for the same.
	Short []string `json:"short"`
}

// foldData is a stretch of the run that is narrow at first.
type foldData struct {
	Name string `json:"name"`
	Open bool   `json:"open,omitempty"`
	// Spans has for each stretch of its events the first, counted from the end of the last
	// stretch, and how many they are.
	Spans []int `json:"spans"`
}

type failedData struct {
	Event int    `json:"event"`
	Line  int    `json:"line,omitempty"`
	Text  string `json:"text,omitempty"`
}

// tones are the names of the tones, by their number.
var tones = []string{trace.Plain: "plain", trace.Good: "good", trace.Bad: "bad", trace.Waiting: "waiting", trace.Strong: "strong"}

// data returns the data block. What would end a script element is escaped in it.
func (p Page) data() ([]byte, error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	data := pageData{Kinds: kinds, Tones: tones, Relations: relationNames}
	runs := slices.Clone(p.Runs)
	for i := range runs {
		run := &runs[i]
		if run.Name == "" && len(runs) > 1 {
			run.Name = []string{"first run", "second run"}[i]
		}
		d, err := run.data()
		if err != nil {
			return nil, fmt.Errorf("run %q: %w", run.Name, err)
		}
		data.Runs = append(data.Runs, d)
	}
	if len(runs) == 2 {
		data.Divergence = divergence(runs[0], runs[1])
	}
	return json.Marshal(data)
}

func divergence(a, b Run) *divergenceData {
	p := trace.DivergenceOfRecords(a.Records, b.Records)
	if p.Same() {
		return nil
	}
	d := &divergenceData{Words: p.Words(a.Name, b.Name), Events: [2]int{-1, -1}}
	for i, next := range [][]trace.Step{p.NextA, p.NextB} {
		if len(next) > 0 {
			d.Events[i] = next[0].Record
		}
	}
	return d
}

func (r Run) data() (runData, error) {
	t, err := newTimeline(r.Records)
	if err != nil {
		return runData{}, err
	}
	words := interner{index: map[string]int64{}}
	d := runData{Name: r.Name, Events: [][]int64{}, Bars: []int64{}, Links: []int{}}
	for i, g := range t.groups {
		d.Groups = append(d.Groups, groupData{Name: g.name, Script: g.script, Folded: g.folded})
		for _, l := range t.lanes {
			if l.group == i {
				d.Groups[i].Lanes = append(d.Groups[i].Lanes, l.name)
				d.Groups[i].Short = append(d.Groups[i].Short, l.short)
			}
		}
	}
	var last event
	for _, e := range t.events {
		d.Events = append(d.Events, e.data(last, &words))
		last = e
	}
	for _, b := range t.bars {
		d.Bars = append(d.Bars, b.data()...)
	}
	for _, l := range t.links {
		d.Links = append(d.Links, l.from, l.to, int(l.how))
	}
	d.Strings = words.all
	d.Failed, err = r.failed(t)
	for _, f := range t.folds {
		d.Folds = append(d.Folds, f.data(d.Failed))
	}
	return d, err
}

// data is an event in the form that runData documents.
func (e event) data(last event, words *interner) []int64 {
	d := []int64{int64(e.at - last.at), e.seq - last.seq, int64(e.lane), int64(slices.Index(kinds, e.kind)), int64(e.tone), words.number(e.label)}
	for _, f := range e.fields {
		d = append(d, words.number(f.key), words.number(f.value))
	}
	return d
}

func (b bar) data() []int64 {
	from, open := int64(b.from), int64(0)
	if b.before > 0 {
		from = -1 - int64(b.before/time.Nanosecond)
	}
	if b.open {
		open = 1
	}
	return []int64{int64(b.main), from, int64(b.to), open}
}

// data is a fold as the page has it. It is open if the command that it came of has failed.
func (f fold) data(failed *failedData) foldData {
	d, last := foldData{Name: f.name, Open: failed != nil && f.boot && failed.Event == f.line}, 0
	for _, span := range f.spans {
		d.Spans = append(d.Spans, span[0]-last, span[1]-span[0])
		last = span[1]
	}
	return d
}

// failed says where a run failed, nil if it did not.
func (r Run) failed(t *timeline) (*failedData, error) {
	if r.Failed == nil {
		return nil, nil
	}
	at := t.lastCommand()
	if r.Failed.Seq != 0 {
		if at = slices.IndexFunc(t.events, func(e event) bool { return e.seq == r.Failed.Seq }); at < 0 {
			return nil, fmt.Errorf("it failed at record %d, which is not among its records", r.Failed.Seq)
		}
	}
	return &failedData{Event: at, Line: r.Failed.Line, Text: r.Failed.Text}, nil
}

// interner numbers texts.
type interner struct {
	all   []string
	index map[string]int64
}

func (n *interner) number(text string) int64 {
	i, ok := n.index[text]
	if !ok {
		i = int64(len(n.all))
		n.index[text] = i
		n.all = append(n.all, text)
	}
	return i
}
