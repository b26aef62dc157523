package keyspace

import (
	"maps"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// group is the synced watchers of one span, which get the same events.
type group struct {
	span
	members []*Watcher
	pending []change // of the transaction being published
}

// prefixLength says how many watched prefixes have one length.
type prefixLength struct{ bytes, groups int }

// registry finds the watchers of a key. It is guarded by the store's lock.
type registry struct {
	lastSeq int64
	alive   map[*Watcher]struct{}

	groups  map[span]*group // with prefixes for ranges that are such
	lengths []prefixLength  // of prefixes, ascending
	others  []*group        // of neither a single key nor a prefix
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
	index := w.span.index()
	g := r.groups[index]
	if g == nil {
		g = &group{span: w.span}
		r.groups[index] = g
		switch index.kind {
		case singleKey:
		case prefix:
			r.countLength(len(w.key), 1)
		default:
			r.others = append(r.others, g)
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
	if last > 0 {
		return
	}
	index := g.index()
	delete(r.groups, index)
	switch index.kind {
	case singleKey:
	case prefix:
		r.countLength(len(g.key), -1)
	default:
		r.others = slices.DeleteFunc(r.others, func(o *group) bool { return o == g })
	}
}

// countLength notes that there is one prefix more or less of that length.
func (r *registry) countLength(bytes, delta int) {
	i, ok := slices.BinarySearchFunc(r.lengths, bytes, func(l prefixLength, n int) int { return l.bytes - n })
	if !ok {
		r.lengths = slices.Insert(r.lengths, i, prefixLength{bytes: bytes})
	}
	r.lengths[i].groups += delta
	if r.lengths[i].groups == 0 {
		r.lengths = slices.Delete(r.lengths, i, i+1)
	}
}

// visit calls fn for every group that watches key.
func (r *registry) visit(key string, fn func(*group)) {
	if g := r.groups[span{key: key}]; g != nil {
		fn(g)
	}
	for _, l := range r.lengths {
		if l.bytes > len(key) {
			break
		}
		if g := r.groups[span{key: key[:l.bytes], kind: prefix}]; g != nil {
			fn(g)
		}
	}
	for _, g := range r.others {
		if g.contains(key) {
			fn(g)
		}
	}
}

// prefix is the kind of an index: of all keys that begin with its key.
const prefix spanKind = fromKey + 1

// index returns what the group of s is found by.
func (s span) index() span {
	if s.kind != halfOpen || len(s.key) != len(s.end) {
		return s
	}
	last := len(s.key) - 1
	if s.key[last] < 0xff && s.end[last] == s.key[last]+1 && strings.HasPrefix(s.end, s.key[:last]) {
		return span{key: s.key, kind: prefix}
	}
	return s
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
