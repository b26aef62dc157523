package keyspace

import (
	"maps"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// group is the synced watchers of one span, which get the same events.
type group struct {
	span
	members []*Watcher
	pending []change // of the transaction being published
}

// registry finds the watchers of a key. It is guarded by the store's lock.
type registry struct {
	lastSeq int64
	alive   map[*Watcher]struct{}

	groups map[span]*group
	ranges []*group // those of more than a single key, one for each kind of object as a rule
}

func newRegistry() registry {
	return registry{alive: make(map[*Watcher]struct{}), groups: make(map[span]*group)}
}

// all returns every watcher, oldest first.
func (r *registry) all() []*Watcher {
	return slices.SortedFunc(maps.Keys(r.alive), func(a, b *Watcher) int { return int(a.seq - b.seq) })
}

// join puts w into the group of its span.
func (r *registry) join(w *Watcher) {
	g := r.groups[w.span]
	if g == nil {
		g = &group{span: w.span}
		r.groups[w.span] = g
		if w.kind != singleKey {
			r.ranges = append(r.ranges, g)
		}
	}
	w.group, w.place = g, len(g.members)
	g.members = append(g.members, w)
}

// leave takes w out of its group, if it is in one.
func (r *registry) leave(w *Watcher) {
	g := w.group
	if g == nil {
		return
	}
	last := len(g.members) - 1
	g.members[w.place] = g.members[last]
	g.members[w.place].place = w.place
	g.members[last] = nil
	g.members = g.members[:last]
	w.group = nil
	if last == 0 {
		delete(r.groups, g.span)
		r.ranges = slices.DeleteFunc(r.ranges, func(o *group) bool { return o == g })
	}
}

// visit calls fn for every group that watches key.
func (r *registry) visit(key string, fn func(*group)) {
	if g := r.groups[span{key: key}]; g != nil {
		fn(g)
	}
	for _, g := range r.ranges {
		if g.contains(key) {
			fn(g)
		}
	}
}

// eventOf returns the event of a change.
func eventOf(c change, prevKV bool) *mvccpb.Event {
	ev := &mvccpb.Event{Kv: &c.now.kv}
	if c.now.tombstone() {
		ev.Type = mvccpb.Event_DELETE
	}
	created := c.now.kv.CreateRevision == c.now.kv.ModRevision
	if prevKV && c.prev != nil && !created {
		ev.PrevKv = &c.prev.kv
	}
	return ev
}
