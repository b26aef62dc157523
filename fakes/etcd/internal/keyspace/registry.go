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

	keys     map[string]*group // of a single key
	prefixes map[string]*group // of all keys with a prefix
	lengths  []prefixLength    // ascending
	others   []*group          // of any other range
}

func newRegistry() registry {
	return registry{
		alive:    make(map[*Watcher]struct{}),
		keys:     make(map[string]*group),
		prefixes: make(map[string]*group),
	}
}

// all returns every watcher, oldest first.
func (r *registry) all() []*Watcher {
	return slices.SortedFunc(maps.Keys(r.alive), func(a, b *Watcher) int { return int(a.seq - b.seq) })
}

// join puts w into the group of its span.
func (r *registry) join(w *Watcher) {
	g := r.find(w.span)
	if g == nil {
		g = &group{span: w.span}
		switch {
		case w.kind == singleKey:
			r.keys[w.key] = g
		case w.isPrefix():
			r.prefixes[w.key] = g
			r.countLength(len(w.key), 1)
		default:
			r.others = append(r.others, g)
		}
	}
	w.group, w.index = g, len(g.members)
	g.members = append(g.members, w)
}

// find returns the group of exactly s, or nil.
func (r *registry) find(s span) *group {
	switch {
	case s.kind == singleKey:
		return r.keys[s.key]
	case s.isPrefix():
		return r.prefixes[s.key]
	}
	for _, g := range r.others {
		if g.span == s {
			return g
		}
	}
	return nil
}

// leave takes w out of its group, if it is in one.
func (r *registry) leave(w *Watcher) {
	g := w.group
	if g == nil {
		return
	}
	last := len(g.members) - 1
	g.members[w.index] = g.members[last]
	g.members[w.index].index = w.index
	g.members[last] = nil
	g.members = g.members[:last]
	w.group = nil
	if last > 0 {
		return
	}
	switch {
	case g.kind == singleKey:
		delete(r.keys, g.key)
	case g.isPrefix():
		delete(r.prefixes, g.key)
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
	if g := r.keys[key]; g != nil {
		fn(g)
	}
	for _, l := range r.lengths {
		if l.bytes > len(key) {
			break
		}
		if g := r.prefixes[key[:l.bytes]]; g != nil {
			fn(g)
		}
	}
	for _, g := range r.others {
		if g.contains(key) {
			fn(g)
		}
	}
}

// isPrefix says whether s is the range of all keys that begin with s.key.
func (s span) isPrefix() bool {
	if s.kind != halfOpen || len(s.key) != len(s.end) {
		return false
	}
	last := len(s.key) - 1
	return s.key[last] < 0xff && s.end[last] == s.key[last]+1 && strings.HasPrefix(s.end, s.key[:last])
}

// eventOf returns the event of a change.
func eventOf(c *change, prevKV bool) *mvccpb.Event {
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
