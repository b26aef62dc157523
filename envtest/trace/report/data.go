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
	// Parting is where two runs part; absent if they do not.
	Parting *partingData `json:"parting,omitempty"`
}

type partingData struct {
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
	Bars []int64 `json:"bars"`
	// Links has for each link its two events and its relation.
	Links  []int       `json:"links"`
	Failed *failedData `json:"failed,omitempty"`
}

type groupData struct {
	Name   string   `json:"name"`
	Script bool     `json:"script,omitempty"`
	Folded bool     `json:"folded,omitempty"`
	Lanes  []string `json:"lanes"`
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
		data.Parting = parting(runs[0], runs[1])
	}
	return json.Marshal(data)
}

func parting(a, b Run) *partingData {
	p := trace.PartRecords(a.Records, b.Records)
	if p.Same() {
		return nil
	}
	d := &partingData{Words: p.Words(a.Name, b.Name), Events: [2]int{-1, -1}}
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
	return d, err
}

// data is an event in the form that runData documents.
func (e event) data(last event, words *interner) []int64 {
	d := []int64{int64(e.at - last.at), e.seq - last.seq, int64(e.lane), kindNumber(e.kind), int64(e.tone), words.number(e.label)}
	for _, f := range e.fields {
		d = append(d, words.number(f.key), words.number(f.value))
	}
	return d
}

func kindNumber(kind string) int64 {
	for i, k := range kinds {
		if k == kind {
			return int64(i)
		}
	}
	return -1
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

// failed says where a run failed, nil if it did not.
func (r Run) failed(t *timeline) (*failedData, error) {
	if r.Failed == nil {
		return nil, nil
	}
	at := t.lastCommand()
	if r.Failed.Seq != 0 {
		found := false
		if at, found = t.find(r.Failed.Seq); !found {
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
