package report

import (
	"slices"
	"strings"

	"snowglobe.test/envtest/trace"
)

// fold is what a page shows as a narrow strip at first, so that a script's own time gets
// the width: the boot of a server, or the servers' end after the last line of the script.
type fold struct {
	name string
	boot bool // it is a boot, not the end
	line int  // the script's line before it; -1 if there is none
	// spans are its events: of each span, the records from the first index up to the second,
	// without the latter.
	spans [][2]int
}

func newFolds(recs []trace.Record, sorted *sorter) []fold {
	f := folder{
		recs: recs, sorted: sorted, notable: notable(recs), lastLine: lastLine(recs),
		current: map[serverKey]int{}, newest: map[string]serverKey{}, stages: map[serverKey]map[string]bool{}, line: -1,
	}
	for i, rec := range recs {
		f.add(i, rec)
	}
	return f.folds
}

// serverKey identifies a server. If there is only one, records may leave its name empty.
type serverKey struct{ plane, server string }

// folder makes folds, record by record.
type folder struct {
	recs     []trace.Record
	sorted   *sorter
	notable  map[partKey]bool // hooks and stages that fail, are held, or have a rule
	lastLine int              // of the script; -1 if there is none

	folds   []fold
	current map[serverKey]int             // the fold that a server's events go to
	newest  map[string]serverKey          // of each control plane, the server whose fold began last
	stages  map[serverKey]map[string]bool // of each server, the stages begun since its last boot began
	line    int                           // the script's newest; -1 before the first
}

// add begins and ends folds at a record, and puts the record into one that it belongs to.
func (f *folder) add(i int, rec trace.Record) {
	key := serverKey{rec.ControlPlane, recordServer(rec)}
	switch e := rec.Event.(type) {
	case trace.Note:
		if isLine(e) {
			f.line = i
			clear(f.current)
		}
		return
	case trace.Stage:
		if e.Phase == trace.Start && f.boots(key, e.Name) {
			f.begin(key, "boot")
		}
	case trace.Signal:
		f.ends(key)
	case trace.Hook:
		if e.Kind == trace.PreShutdown {
			f.ends(key)
		}
	}
	if at, folding := f.of(key); folding && f.routine(rec) {
		f.folds[at].add(i)
	}
	if s, ok := rec.Event.(trace.Signal); ok && s.Name == ready && f.line < 0 {
		delete(f.current, key) // the script has not begun, so none of its lines ends the boot
	}
}

// of returns the fold that an event of a server goes to, if there is one now. An event that does
// not name its server, such as a write to the store, goes to the fold that began last.
func (f *folder) of(key serverKey) (at int, folding bool) {
	if at, folding = f.current[key]; folding {
		return at, true
	}
	if at, folding = f.current[serverKey{plane: key.plane}]; folding || key.server != "" {
		return at, folding
	}
	at, folding = f.current[f.newest[key.plane]]
	return at, folding
}

// ready is the signal with which a boot is over.
const ready = "HasBeenReady"

// boots reports whether a stage is the first of a boot: it is the server's first, or the server
// has begun it before, in an earlier boot.
func (f *folder) boots(key serverKey, stage string) bool {
	first := f.stages[key] == nil || f.stages[key][stage]
	if first {
		f.stages[key] = map[string]bool{}
	}
	f.stages[key][stage] = true
	return first
}

// ends begins the fold of a server's end, if the script has no line left, and its last line is
// not a shutdown, which the page should show.
func (f *folder) ends(key serverKey) {
	if _, folding := f.current[key]; !folding && f.line >= 0 && f.line == f.lastLine {
		if text, _ := cutNote(f.recs[f.line].Event.(trace.Note).Text); !strings.HasPrefix(text, "shutdown") {
			f.begin(key, "end")
		}
	}
}

func (f *folder) begin(key serverKey, what string) {
	made := fold{name: what, boot: what == "boot", line: f.line}
	if key.server != "" {
		made.name += " of " + key.server
	}
	f.current[key], f.newest[key.plane] = len(f.folds), key
	f.folds = append(f.folds, made)
}

func (f *fold) add(i int) {
	if last := len(f.spans) - 1; last >= 0 && f.spans[last][1] == i {
		f.spans[last][1]++
		return
	}
	f.spans = append(f.spans, [2]int{i, i + 1})
}

// routine reports whether every boot has such a record. What clients do, what rules act on and
// what fails is not routine.
func (f *folder) routine(rec trace.Record) bool {
	switch e := rec.Event.(type) {
	case trace.Stage, trace.Hook:
		return !f.notable[partOf(rec, e)]
	case trace.Check:
		hook := strings.TrimPrefix(e.Name, "poststarthook/")
		return !f.notable[partKey{serverKey{rec.ControlPlane, recordServer(rec)}, "hook", hook}]
	case trace.Request:
		return f.sorted.routineUser(e.User)
	case trace.Write:
		return !f.sorted.theirs[e.Revision]
	case trace.Signal, trace.Turn:
		return true
	}
	return false
}

// partKey identifies a hook or a stage of a server.
type partKey struct {
	serverKey
	kind, name string
}

func partOf(rec trace.Record, e trace.Event) partKey {
	key := partKey{serverKey: serverKey{rec.ControlPlane, recordServer(rec)}}
	switch e := e.(type) {
	case trace.Stage:
		key.kind, key.name = "stage", e.Name
	case trace.Hook:
		key.kind, key.name = "hook", e.Name
	case trace.Fault:
		key.kind, key.name, _ = strings.Cut(e.Point, "/")
	}
	return key
}

// notable returns the hooks and stages that fail, are held, or have a rule.
func notable(recs []trace.Record) map[partKey]bool {
	all := map[partKey]bool{}
	for _, rec := range recs {
		part := partOf(rec, rec.Event)
		switch e := rec.Event.(type) {
		case trace.Stage:
			all[part] = all[part] || e.Err != nil
		case trace.Hook:
			all[part] = all[part] || e.Err != nil || e.Phase == trace.Held
		case trace.Fault:
			all[part] = true
			part.server = "" // as in the records of a single server
			all[part] = true
		}
	}
	return all
}

// recordServer is the server that a record is about; empty if it does not say.
func recordServer(rec trace.Record) string {
	switch e := rec.Event.(type) {
	case trace.Fault:
		return serverOf(rec, e.Server)
	case trace.Turn:
		return serverOf(rec, e.Server)
	}
	return rec.Server
}

// isLine reports whether a note is a line of the script: a comment or a command.
func isLine(note trace.Note) bool {
	_, form := cutNote(note.Text)
	return form != remark
}

func lastLine(recs []trace.Record) int {
	for i, rec := range slices.Backward(recs) {
		if note, ok := rec.Event.(trace.Note); ok && isLine(note) {
			return i
		}
	}
	return -1
}
