package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"snowglobe.test/conformance/engine"
)

// pageView is what the template of the page shows.
type pageView struct {
	Title   string
	Targets []targetView
	Systems []systemView
	Broken  []brokenView
	Cases   int
	Reaches string // how many cases have which reach
}

// targetView is a report as a column of the page.
type targetView struct {
	Name    string
	Facts   []string // release, clock, date
	Counts  []countView
	Verdict string // in words
	State   string // the CSS class of the verdict
	Error   string
}

// countView is how many cases are in a state.
type countView struct {
	State, Words string // its CSS class, and its name for people
	N            int
	From, Width  float64 // of its part of a bar, in percent
}

// systemView is a system with its cases.
type systemView struct {
	ID, Name string
	Cells    []cellView
	Cases    []caseView
	Notable  []countView // the states other than kept, over all targets
	Broken   bool
}

// cellView is a system on a target.
type cellView struct {
	Counts []countView
	Text   string
	Judged bool
}

// caseView is a case with its results.
type caseView struct {
	ID, Promise string
	Sources     []sourceLink
	Labels      []string
	Results     []resultView
}

// resultView is a case on a target.
type resultView struct {
	Target, State, Mark, Words, Took string
	Message                          string
	Broken                           string // the anchor of its report; empty if there is none
}

// brokenView is a promise that a target breaks.
type brokenView struct {
	Anchor, Target string
	Sources        []sourceLink
	Result         engine.Result
	Exchanges      []exchangeView
}

// stateWords are what the page calls the states, in order, with a class and a mark for each.
var stateWords = []struct {
	state              engine.State
	class, words, mark string
}{
	{engine.Passed, "kept", "kept", "✓"},
	{engine.Failed, "broken", "broken", "✗"},
	{engine.NotApplicable, "inapplicable", "not applicable", "–"},
	{engine.NotRun, "unjudged", "not judged", "?"},
}

func newPageView(reports []engine.Report) pageView {
	view := pageView{Title: "Conformance of " + reports[0].Target}
	if len(reports) > 1 {
		view.Title = fmt.Sprintf("Conformance of %d targets", len(reports))
	}
	results := map[string][]*engine.Result{} // by case; nil where a report does not have it
	var cases []engine.Info
	for i, report := range reports {
		view.Targets = append(view.Targets, newTargetView(report))
		for _, result := range report.Results {
			if results[result.Case.ID] == nil {
				results[result.Case.ID] = make([]*engine.Result, len(reports))
				cases = append(cases, result.Case)
			}
			results[result.Case.ID][i] = &result
		}
	}
	view.Cases, view.Reaches = len(cases), engine.Reaches(cases)
	slices.SortFunc(cases, func(a, b engine.Info) int { return strings.Compare(a.ID, b.ID) })
	for _, system := range systems {
		if s := view.system(system.ID, system.Name, cases, results); len(s.Cases) > 0 {
			view.Systems = append(view.Systems, s)
		}
	}
	return view
}

// system returns a system of the page, and adds what is broken in it.
func (p *pageView) system(id, name string, cases []engine.Info, results map[string][]*engine.Result) systemView {
	s := systemView{ID: id, Name: name}
	counts := make([]map[engine.State]int, len(p.Targets))
	for i := range counts {
		counts[i] = map[engine.State]int{}
	}
	for _, c := range cases {
		if c.System != id {
			continue
		}
		view := caseView{ID: c.ID, Promise: c.Promise, Sources: sourceLinks(c.Source), Labels: c.Labels()[1:]}
		for i, result := range results[c.ID] {
			if result == nil {
				continue
			}
			counts[i][result.State]++
			shown := newResultView(result, p.Targets[i].Name)
			if result.State == engine.Failed {
				s.Broken = true
				shown.Broken = fmt.Sprintf("broken-%d", len(p.Broken)+1)
				p.Broken = append(p.Broken, brokenView{shown.Broken, p.Targets[i].Name, view.Sources, *result,
					exchangeViews(result.Exchanges)})
			}
			view.Results = append(view.Results, shown)
		}
		s.Cases = append(s.Cases, view)
	}
	notable := map[engine.State]int{}
	for _, n := range counts {
		s.Cells = append(s.Cells, newCellView(n))
		for state, count := range n {
			notable[state] += count
		}
	}
	delete(notable, engine.Passed)
	s.Notable = countViews(notable)
	return s
}

func newCellView(n map[engine.State]int) cellView {
	judged := n[engine.Passed] + n[engine.Failed]
	cell := cellView{Counts: countViews(n), Judged: judged > 0, Text: "no case"}
	switch {
	case cell.Judged:
		cell.Text = fmt.Sprintf("%d of %d", n[engine.Passed], judged)
	case len(cell.Counts) > 0:
		cell.Text = cell.Counts[0].Words
	}
	return cell
}

// countViews returns the states that occur, with their counts.
func countViews(n map[engine.State]int) (views []countView) {
	all, before := 0, 0
	for _, count := range n {
		all += count
	}
	for _, w := range stateWords {
		if count := n[w.state]; count > 0 {
			views = append(views, countView{w.class, w.words, count, percent(before, all), percent(count, all)})
			before += count
		}
	}
	return views
}

func percent(n, of int) float64 { return 100 * float64(n) / float64(of) }

func newTargetView(r engine.Report) targetView {
	n := map[engine.State]int{}
	for _, result := range r.Results {
		n[result.State]++
	}
	view := targetView{Name: r.Target, Counts: countViews(n), Error: r.Error, State: "kept",
		Verdict: "keeps all its promises"}
	clock := "real time"
	if r.VirtualTime {
		clock, view.Name = "virtual time", view.Name+", virtual time"
	}
	took := cmp.Or(r.Took.Round(time.Second), r.Took.Round(time.Millisecond))
	for _, fact := range []string{r.Release, r.Date.Format(time.DateOnly), took.String() + " of " + clock} {
		if fact != "" {
			view.Facts = append(view.Facts, fact)
		}
	}
	switch {
	case n[engine.Failed] == 1:
		view.State, view.Verdict = "broken", "breaks a promise"
	case n[engine.Failed] > 1:
		view.State, view.Verdict = "broken", fmt.Sprintf("breaks %d promises", n[engine.Failed])
	case n[engine.Passed] == 0:
		view.State, view.Verdict = "unjudged", "could not be judged"
	case n[engine.NotRun] > 0:
		view.State, view.Verdict = "unjudged", "could not be judged by all cases"
	case n[engine.NotApplicable] > 0:
		view.Verdict = "keeps all promises that apply to it"
	}
	return view
}

func newResultView(r *engine.Result, target string) resultView {
	view := resultView{Target: target}
	for _, w := range stateWords {
		if w.state == r.State {
			view.State, view.Words, view.Mark = w.class, w.words, w.mark
		}
	}
	switch r.State {
	case engine.Passed, engine.Failed:
		view.Took = r.Took.Round(time.Millisecond).String()
	case engine.NotApplicable, engine.NotRun:
		view.Message = r.Message
	}
	return view
}

// Multiple reports whether there is more than one target.
func (p pageView) Multiple() bool { return len(p.Targets) > 1 }

// Reasons are the different reasons for which a case was not judged.
func (c caseView) Reasons() (reasons []string) {
	for _, r := range c.Results {
		if r.Message != "" && !slices.Contains(reasons, r.Message) {
			reasons = append(reasons, r.Message)
		}
	}
	return reasons
}

// States are the classes of the case's results, for the page's filter.
func (c caseView) States() string {
	var states []string
	for _, r := range c.Results {
		states = append(states, r.State)
	}
	return strings.Join(states, " ")
}
