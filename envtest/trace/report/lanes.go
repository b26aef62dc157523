package report

import (
	"cmp"
	"strings"

	"snowglobe.test/envtest/trace"
)

// section is a part of a server's or a control plane's lanes. Their order is that on
// the page.
type section int

const (
	script section = iota
	faults
	caches
	clients
	store
	stages
	hooks
	checks
	ownRequests
	ownCaches
	ownWrites
	turns
)

// sectionNames are what the page calls the sections.
var sectionNames = map[section]string{
	script:      "Script",
	faults:      "Faults and gates",
	caches:      "Informers and caches",
	clients:     "Clients",
	store:       "Store",
	stages:      "Stages and signals",
	hooks:       "Hooks",
	checks:      "Checks",
	ownRequests: "Routine: requests",
	ownCaches:   "Routine: informers and caches",
	ownWrites:   "Routine: store",
	turns:       "Routine: turns",
}

// routine reports whether a section is folded away at first.
func (s section) routine() bool { return s >= ownRequests }

// noteLanes are the lanes of the script.
var noteLanes = map[noteForm]string{phase: "phases", command: "commands", remark: "notes"}

// groupKey identifies a group of lanes. Sections that are not about one server have
// no server, and the script has no control plane either.
type groupKey struct {
	plane   string
	section section
	server  string
}

// laneKey identifies a lane. Of lanes in a group, one of a lower rank comes first.
type laneKey struct {
	groupKey
	rank int
	name string
}

func compareLanes(a, b laneKey) int {
	return cmp.Or(
		cmp.Compare(min(a.section, faults), min(b.section, faults)), // the script is above everything
		natural(a.plane, b.plane), cmp.Compare(a.section, b.section),
		natural(a.server, b.server), cmp.Compare(a.rank, b.rank), natural(a.name, b.name))
}

// sorter decides the lanes of a run's events.
type sorter struct {
	theirs    map[int64]bool     // revisions of changes that clients of the test made
	clients   map[string]bool    // users of the test's clients
	resources map[string]bool    // resources in the store that these clients change
	faulty    map[faultyKey]bool // points at which a rule has acted
}

type faultyKey struct{ plane, server, point string }

func newSorter(recs []trace.Record) *sorter {
	s := &sorter{theirs: map[int64]bool{}, clients: map[string]bool{}, resources: map[string]bool{}, faulty: map[faultyKey]bool{}}
	for _, rec := range recs {
		switch e := rec.Event.(type) {
		case trace.Answer:
			s.clients[e.Client] = true
			if e.Writes() {
				for _, o := range e.Objects {
					s.theirs[o.Revision] = true
				}
			}
		case trace.WatchEvent:
			s.clients[e.Client] = true
		case trace.Fault:
			s.faulty[faultyKey{rec.ControlPlane, serverOf(rec, e.Server), e.Point}] = true
		}
	}
	for _, rec := range recs {
		if w, ok := rec.Event.(trace.Write); ok && s.theirs[w.Revision] && !isHeartbeat(w.Key) {
			resource, _ := cutKey(w.Key)
			s.resources[resource] = true
		}
	}
	return s
}

// serverOf is which server a record is about, given what its event says.
func serverOf(rec trace.Record, said string) string { return cmp.Or(rec.Server, said) }

// lane returns the lane of a record; its name is empty if its event has none.
func (s *sorter) lane(rec trace.Record) laneKey {
	in := func(section section, server, name string) laneKey {
		return laneKey{groupKey{rec.ControlPlane, section, server}, 0, name}
	}
	switch e := rec.Event.(type) {
	case trace.Note:
		_, form := cutNote(e.Text)
		return laneKey{groupKey{section: script}, int(form), noteLanes[form]}
	case trace.Stage:
		return in(stages, rec.Server, "stages")
	case trace.Signal:
		return in(stages, rec.Server, "signals")
	case trace.Hook:
		if e.Kind == trace.PreShutdown {
			return in(hooks, rec.Server, e.Name+" ("+string(e.Kind)+")")
		}
		return in(hooks, rec.Server, e.Name)
	case trace.Check:
		return in(checks, rec.Server, e.Endpoint+" "+e.Name)
	case trace.Request:
		return s.request(in, e)
	case trace.Fault:
		return s.point(in, rec, e.Point, e.Server, faults)
	case trace.Turn:
		return s.point(in, rec, e.Point, e.Server, turns)
	case trace.Answer:
		if isHeartbeat(e.URI) {
			return in(ownRequests, "", "heartbeats of nodes, answers")
		}
		return in(clients, "", e.Client+" answers")
	case trace.WatchEvent:
		return in(clients, "", watchLane(e.Client, e.URI)+" #"+number(int64(e.Watch)))
	case trace.Write:
		resource, _ := cutKey(e.Key)
		if s.resources[resource] && !isHeartbeat(e.Key) {
			return in(store, "", resource)
		}
		return in(ownWrites, "", resource)
	}
	return laneKey{}
}

func (s *sorter) request(in func(section, string, string) laneKey, e trace.Request) laneKey {
	switch {
	case isHeartbeat(e.URI):
		return in(ownRequests, "", "heartbeats of nodes, requests")
	case s.routineUser(e.User):
		return in(ownRequests, "", joined(" ", e.User, e.Verb))
	case e.Verb == "watch":
		return in(clients, "", watchLane(e.User, e.URI))
	}
	return in(clients, "", cmp.Or(e.User, "(no user)")+" requests")
}

// isHeartbeat reports whether a path or a key is that of a node's heartbeat Lease. Each node
// renews its own hundreds of times an hour, which would bury other lanes' events.
func isHeartbeat(path string) bool {
	return strings.Contains(path, "/namespaces/kube-node-lease/leases") || strings.Contains(path, "/leases/kube-node-lease/")
}

// routineUser reports whether a user is a part of the control plane, such as system:apiserver.
// Service accounts outside kube-system, and users of the test's clients, are not.
func (s *sorter) routineUser(user string) bool {
	account, isAccount := strings.CutPrefix(user, "system:serviceaccount:")
	return strings.HasPrefix(user, "system:") && !s.clients[user] &&
		(!isAccount || strings.HasPrefix(account, "kube-system:"))
}

func watchLane(user, uri string) string {
	path, _, _ := strings.Cut(uri, "?")
	return cmp.Or(user, "(no user)") + " watch " + path
}

// point is the lane of an operation at a point. Informers and caches have lanes of
// their own, for rules and turns alike.
func (s *sorter) point(in func(section, string, string) laneKey, rec trace.Record, point, said string, elsewhere section) laneKey {
	server := serverOf(rec, said)
	stage, _, _ := strings.Cut(point, "/")
	switch {
	case stage != "informer" && stage != "cache":
		return in(elsewhere, server, point)
	case s.faulty[faultyKey{rec.ControlPlane, server, point}]:
		return in(caches, server, point)
	}
	return in(ownCaches, server, point)
}

// natural compares texts so that #10 comes after #9.
func natural(a, b string) int {
	for a != "" && b != "" {
		x, y := leadingNumber(a), leadingNumber(b)
		if x != "" && y != "" {
			if n := cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y)); n != 0 {
				return n
			}
			a, b = a[len(x):], b[len(y):]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

func leadingNumber(s string) string {
	return s[:len(s)-len(strings.TrimLeft(s, "0123456789"))]
}
