package report

import (
	"time"

	"snowglobe.test/envtest/trace"
)

// bar is what takes time, from one event to another. It shows what its main event says.
type bar struct {
	main, from, to int
	// before is how long before its main event the bar begins, if no event tells; then
	// from is main.
	before time.Duration
	// open is set if nothing has ended it by the control plane's last event, or by the crash
	// of its server.
	open bool
}

// spanKey identifies what begins and ends: both have the same.
type spanKey struct {
	plane, server, kind string
	what                any
}

// newBars finds the bars of a run. The one that began first ends first if several have
// the same key.
func newBars(recs []trace.Record, events []event) []bar {
	b := barBuilder{events: events, open: map[spanKey][]int{}, cutOff: map[int]bool{}, servers: map[string]bool{}, last: map[string]int{}, lasting: map[lastingKey]int{}}
	for i, rec := range recs {
		b.last[rec.ControlPlane] = i
		b.servers[recordServer(rec)] = true
		b.add(i, rec)
	}
	for i := range b.bars {
		if bar := &b.bars[i]; bar.open && !b.cutOff[i] {
			bar.to = b.last[recs[bar.main].ControlPlane]
			if events[bar.main].kind == "note" {
				bar.to = len(recs) - 1
			}
		}
	}
	return b.bars
}

type barBuilder struct {
	events  []event
	bars    []bar
	open    map[spanKey][]int  // indices of open bars, oldest first
	cutOff  map[int]bool       // indices of open bars that a crash has cut off
	servers map[string]bool    // the names of those that there have been
	lasting map[lastingKey]int // indices of the bars that their next one ends
	last    map[string]int     // of each control plane, the last event
}

// lastingKey identifies states of which the next one ends the last.
type lastingKey struct {
	lane int
	what string
}

func (b *barBuilder) add(i int, rec trace.Record) {
	key := spanKey{plane: rec.ControlPlane, server: rec.Server}
	switch e := rec.Event.(type) {
	case trace.Stage:
		key.kind, key.what = "stage", e.Name
		b.phase(key, e.Phase, i)
	case trace.Hook:
		key.what = [2]string{string(e.Kind), e.Name}
		key.kind = spanOf(e.Phase)
		b.phase(key, e.Phase, i)
	case trace.Fault:
		phase := e.Phase
		e.Phase, e.Err = "", nil // what is left is the operation and the rule
		key.kind, key.what = "held", e
		b.phase(key, phase, i)
	case trace.Request:
		key.kind, key.what = "request", [5]string{e.Method, e.URI, e.User, e.UserAgent, e.Verb}
		if e.Phase == trace.End && len(b.open[key]) == 0 {
			b.bars = append(b.bars, bar{main: i, from: i, to: i, before: e.Duration})
			return
		}
		b.phase(key, e.Phase, i)
	case trace.Check:
		b.state(lastingKey{b.events[i].lane, "check"}, i)
	case trace.Note:
		b.note(i, e)
		if name := crashed(e); name != "" && b.servers[name] {
			b.crash(i, rec)
		}
	}
}

// crash cuts off what the server of a record was doing. Those of a single one have no name.
func (b *barBuilder) crash(i int, rec trace.Record) {
	for key, open := range b.open {
		if key.plane != rec.ControlPlane || key.server != rec.Server {
			continue
		}
		for _, at := range open {
			b.bars[at].to, b.cutOff[at] = i, true
		}
		delete(b.open, key)
	}
}

// spanOf names the two spans of a hook.
func spanOf(p trace.Phase) string {
	if p == trace.Held || p == trace.Released {
		return "held"
	}
	return "runs"
}

// phase begins a bar or ends one.
func (b *barBuilder) phase(key spanKey, p trace.Phase, i int) {
	switch p {
	case trace.Start, trace.Held:
		b.open[key] = append(b.open[key], len(b.bars))
		b.bars = append(b.bars, bar{main: i, from: i, to: i, open: true})
	case trace.End, trace.Released:
		waiting := b.open[key]
		if len(waiting) == 0 {
			return
		}
		b.open[key] = waiting[1:]
		began := &b.bars[waiting[0]]
		began.to, began.open = i, false
		if p == trace.End {
			began.main = i
		}
	}
}

// state begins a bar that lasts until the next one with the same key.
func (b *barBuilder) state(key lastingKey, i int) {
	b.endState(key, i)
	b.lasting[key] = len(b.bars)
	b.bars = append(b.bars, bar{main: i, from: i, to: i, open: true})
}

func (b *barBuilder) endState(key lastingKey, i int) {
	if before, ok := b.lasting[key]; ok {
		b.bars[before].to, b.bars[before].open = i, false
		delete(b.lasting, key)
	}
}

// note makes a phase last until the next one, and a command until the next line of
// the script.
func (b *barBuilder) note(i int, e trace.Note) {
	phases, commands := lastingKey{-1, "phase"}, lastingKey{-1, "command"}
	switch _, form := cutNote(e.Text); form {
	case phase:
		b.endState(commands, i)
		b.state(phases, i)
	case command:
		b.state(commands, i)
	}
}
