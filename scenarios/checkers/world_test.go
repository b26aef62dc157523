package checkers_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"snowglobe.test/scenarios/checkers"
)

// world is a small API server that is right: a store, caches that lag behind it, and
// clients whose requests overlap. It writes the history that they would have.
type world struct {
	*rand.Rand
	order    int64
	revision int64
	uids     int
	live     map[string]checkers.Object // by namespace and name
	log      []entry                    // one for each revision
	oldest   int64                      // watches can't begin before it
	servers  []*server
	sessions []*session
	late     []*pending // requests without an answer that may still be done
	watches  []*watcher
	history  checkers.History
	known    int // how much of the log the store's watch has told
}

// entry is a change of an object: nil is none.
type entry struct {
	place         string
	before, after *checkers.Object
}

type server struct {
	name     string
	revision int64 // of its cache
}

type session struct {
	name   string
	op     *pending
	newest map[string]checkers.Object // what it was told of objects
	list   int64                      // the revision of its newest list
	token  string
}

// pending is a request under way.
type pending struct {
	checkers.Operation
	server *server
	done   bool
	lost   bool // its answer will be
	do     func(*checkers.Operation)
}

const (
	group = "/api/v1/namespaces/"
	media = "/configmaps"
)

func newWorld(seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 7)), live: map[string]checkers.Object{}, revision: 10, oldest: 10}
	for i := range 2 {
		w.servers = append(w.servers, &server{fmt.Sprintf("apiserver-%d", i), w.revision})
	}
	for i := range 4 {
		w.sessions = append(w.sessions, &session{name: string(rune('a' + i)), newest: map[string]checkers.Object{}})
	}
	return w
}

// run makes n moves and then ends what is under way.
func (w *world) run(n int) *checkers.History {
	for range n {
		w.move()
	}
	for _, s := range w.sessions {
		if s.op != nil {
			w.finish(s)
		}
	}
	for _, x := range w.servers {
		x.revision = w.revision
	}
	for _, x := range w.watches {
		for w.deliver(x) {
		}
	}
	w.tell(len(w.log))
	w.history.Closed = true
	return &w.history
}

// move lets one thing happen.
func (w *world) move() {
	switch n := w.IntN(20); {
	case n < 9:
		s := pick(w.Rand, w.sessions)
		switch {
		case s.op == nil:
			w.ask(s)
		case !s.op.done && !s.op.lost || s.op.lost && !s.op.done && w.IntN(3) == 0:
			w.do(s.op)
		default:
			w.finish(s)
		}
	case n < 12:
		x := pick(w.Rand, w.servers)
		x.revision = min(w.revision, x.revision+int64(w.IntN(4)))
	case n < 17 && len(w.watches) > 0:
		w.deliver(pick(w.Rand, w.watches))
	case n < 18:
		w.watch()
	case n < 19 && len(w.late) > 0:
		i := w.IntN(len(w.late))
		w.do(w.late[i])
		w.late = slices.Delete(w.late, i, i+1)
	case w.IntN(8) == 0:
		w.oldest = min(w.revision, w.oldest+int64(w.IntN(10)))
	default:
		w.tell(w.known + w.IntN(3))
	}
}

func pick[T any](r *rand.Rand, all []T) T { return all[r.IntN(len(all))] }

func (w *world) next() int64 { w.order++; return w.order }

// tell lets the store's watch tell what it has not told yet.
func (w *world) tell(until int) {
	for ; w.known < min(until, len(w.log)); w.known++ {
		e := w.log[w.known]
		w.history.Writes = append(w.history.Writes, checkers.Write{
			Order: w.next(), Key: "/registry/configmaps/" + e.place, Revision: int64(w.known) + 11, Created: e.before == nil, Deleted: e.after == nil,
		})
	}
}

func (w *world) do(p *pending) {
	p.do(&p.Operation)
	p.done = true
}

// finish answers a request, or loses the answer.
func (w *world) finish(s *session) {
	p := s.op
	s.op = nil
	if !p.done && !p.lost {
		w.do(p)
	}
	p.End = w.next()
	if p.lost {
		if !p.done && w.IntN(2) == 0 {
			w.late = append(w.late, p)
		}
		lost := &checkers.Operation{Session: p.Session, Server: p.Server, Method: p.Method, URI: p.URI, Start: p.Start, End: p.End, Sent: p.Sent}
		switch w.IntN(3) {
		case 0:
			lost.Code = 504
		case 1:
			lost.Err = "connection reset"
		default:
			lost.End = 0
		}
		w.history.Operations = append(w.history.Operations, *lost)
		return
	}
	for _, o := range p.Objects {
		if !p.DryRun {
			s.newest[place(o)] = o
		}
	}
	if p.Revision > 0 {
		s.list, s.token = p.Revision, p.Continue
	}
	w.history.Operations = append(w.history.Operations, p.Operation)
}

func place(o checkers.Object) string { return o.Namespace + "/" + o.Name }

// write gives an object the next revision; nil removes it.
func (w *world) write(at string, after *checkers.Object) checkers.Object {
	w.revision++
	e := entry{place: at}
	if before, ok := w.live[at]; ok {
		e.before = &before
	}
	if after == nil {
		delete(w.live, at)
		w.log = append(w.log, e)
		return checkers.Object{Revision: w.revision}
	}
	stored := *after
	stored.Revision = w.revision
	stored.Digest = fmt.Sprintf("d%d", w.revision)
	e.after = &stored
	w.live[at] = stored
	w.log = append(w.log, e)
	return stored
}

// at returns the objects as they were at a revision, by place.
func (w *world) at(revision int64) map[string]checkers.Object {
	all := map[string]checkers.Object{}
	for i, e := range w.log {
		if int64(i)+11 > revision {
			break
		}
		if e.after == nil {
			delete(all, e.place)
		} else {
			all[e.place] = *e.after
		}
	}
	return all
}

// status answers with a Status about an object.
func status(op *checkers.Operation, code int, reason, name string) {
	op.Code, op.Reason, op.About = code, reason, checkers.Object{Kind: "configmaps", Name: name}
}

// ask begins a request of a session.
func (w *world) ask(s *session) {
	x := pick(w.Rand, w.servers)
	p := &pending{server: x, lost: w.IntN(12) == 0}
	p.Session, p.Server, p.Start = s.name, x.name, w.order
	namespace, name := pick(w.Rand, []string{"n1", "n2"}), pick(w.Rand, []string{"x", "y", "z"})
	at := namespace + "/" + name
	p.URI = group + namespace + media + "/" + name
	p.Sent = checkers.Object{}
	switch w.IntN(12) {
	case 0, 1, 2:
		w.create(p, namespace, name)
	case 3, 4, 5:
		w.update(p, s, at)
	case 6, 7:
		w.delete(p, s, at)
	case 8, 9:
		w.get(p, s, at)
	default:
		w.list(p, s, namespace)
	}
	s.op = p
}

func (w *world) create(p *pending, namespace, name string) {
	p.Method, p.URI = "POST", group+namespace+media
	p.Sent = checkers.Object{Namespace: namespace, Name: name, Labels: pick(w.Rand, []string{"", "app=snow", "app=ice"})}
	if w.IntN(3) == 0 {
		p.Sent.Finalizers = pick(w.Rand, []string{"example.com/f", "example.com/f,example.com/g"})
	}
	p.DryRun = w.IntN(15) == 0
	p.do = func(op *checkers.Operation) {
		if _, ok := w.live[namespace+"/"+name]; ok {
			status(op, 409, "AlreadyExists", name)
			return
		}
		w.uids++
		object := op.Sent
		object.Kind, object.UID = "ConfigMap", fmt.Sprintf("u%d", w.uids)
		op.Code = 201
		if op.DryRun {
			op.Objects = []checkers.Object{object}
			return
		}
		op.Objects = []checkers.Object{w.write(namespace+"/"+name, &object)}
	}
}

// update changes the labels or takes a finalizer away, of the revision that the
// session knows, or of any.
func (w *world) update(p *pending, s *session, at string) {
	p.Method = pick(w.Rand, []string{"PUT", "PATCH"})
	known := s.newest[at]
	_, name, _ := strings.Cut(at, "/")
	p.Sent = checkers.Object{Name: name}
	if w.IntN(4) > 0 {
		p.Sent.Revision, p.Sent.UID = known.Revision, known.UID
	}
	finalize := w.IntN(2) == 0
	labels := pick(w.Rand, []string{"", "app=snow", "app=ice"})
	p.do = func(op *checkers.Operation) {
		object, ok := w.live[at]
		switch {
		case !ok:
			status(op, 404, "NotFound", name)
			return
		case op.Sent.Revision > 0 && op.Sent.Revision != object.Revision:
			status(op, 409, "Conflict", name)
			return
		}
		after := object
		if finalize && object.Finalizers != "" {
			_, after.Finalizers, _ = strings.Cut(object.Finalizers, ",")
		} else {
			after.Labels = labels
		}
		op.Code = 200
		switch {
		case after == object: // nothing to do
		case after.Deleting && after.Finalizers == "":
			w.write(at, nil)
		default:
			after = w.write(at, &after)
		}
		op.Objects = []checkers.Object{after}
	}
}

func (w *world) delete(p *pending, s *session, at string) {
	p.Method = "DELETE"
	_, name, _ := strings.Cut(at, "/")
	if known := s.newest[at]; w.IntN(2) == 0 {
		p.Sent = checkers.Object{Revision: known.Revision, UID: known.UID}
	}
	p.do = func(op *checkers.Operation) {
		object, ok := w.live[at]
		switch {
		case !ok:
			status(op, 404, "NotFound", name)
		case op.Sent.Revision > 0 && op.Sent.Revision != object.Revision:
			status(op, 409, "Conflict", name)
		case object.Finalizers == "":
			w.write(at, nil)
			status(op, 200, "", name)
			op.About.UID = object.UID
		case object.Deleting:
			op.Code, op.Objects = 200, []checkers.Object{object}
		default:
			object.Deleting = true
			op.Code, op.Objects = 200, []checkers.Object{w.write(at, &object)}
		}
	}
}

func (w *world) get(p *pending, s *session, at string) {
	p.Method = "GET"
	_, name, _ := strings.Cut(at, "/")
	cached := w.IntN(2) == 0
	if cached {
		p.URI += "?resourceVersion=0"
	}
	p.do = func(op *checkers.Operation) {
		all := w.live
		if cached {
			all = w.at(p.server.revision)
		}
		if object, ok := all[at]; ok {
			op.Code, op.Objects = 200, []checkers.Object{object}
		} else {
			status(op, 404, "NotFound", name)
		}
	}
}

// list asks in one of the ways there are.
func (w *world) list(p *pending, s *session, namespace string) {
	p.Method, p.URI = "GET", group+namespace+media
	if w.IntN(2) == 0 {
		p.URI, namespace = "/api/v1/configmaps", ""
	}
	selector := pick(w.Rand, []string{"", "", "app=snow"})
	revision := func() int64 { return w.revision }
	query, limit := "", 0
	switch w.IntN(5) {
	case 0:
		query, revision = "&resourceVersion=0", func() int64 { return p.server.revision }
	case 1:
		if s.list > 0 {
			query = fmt.Sprintf("&resourceVersionMatch=NotOlderThan&resourceVersion=%d", s.list)
			revision = func() int64 { p.server.revision = max(p.server.revision, s.list); return p.server.revision }
		}
	case 2:
		if at := s.list; at > 0 {
			query, revision = fmt.Sprintf("&resourceVersionMatch=Exact&resourceVersion=%d", at), func() int64 { return at }
		}
	case 3:
		limit = 2
		query = "&limit=2"
	}
	after := ""
	if s.token != "" && w.IntN(2) == 0 {
		var at int64
		parts := strings.SplitN(s.token, " ", 4)
		_, _ = fmt.Sscan(parts[0], &at)
		namespace, selector, after = parts[1], parts[2], parts[3]
		p.URI, limit, query = "/api/v1/configmaps", 2, "&limit=2&continue="+strings.ReplaceAll(s.token, " ", "+")
		if namespace != "" {
			p.URI = group + namespace + media
		}
		revision = func() int64 { return at }
	}
	p.URI += "?labelSelector=" + selector + query
	p.do = func(op *checkers.Operation) {
		op.Code, op.Revision = 200, revision()
		all := w.at(op.Revision)
		for _, at := range slices.Sorted(maps.Keys(all)) {
			switch {
			case at <= after || !chosen(all[at], namespace, selector):
			case limit > 0 && len(op.Objects) == limit:
				last := op.Objects[limit-1]
				op.Continue = fmt.Sprintf("%d %s %s %s", op.Revision, namespace, selector, place(last))
				return
			default:
				op.Objects = append(op.Objects, all[at])
			}
		}
	}
}

func chosen(o checkers.Object, namespace, selector string) bool {
	return (namespace == "" || o.Namespace == namespace) && (selector == "" || o.Labels == selector)
}
