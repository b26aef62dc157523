package checkers

import (
	"slices"
	"strings"
)

// readStore adds the changes of the store to the objects they are of. Which key
// belongs to which resource is learned from what clients were told at the same
// revisions: it depends on the resource, and for some is not what one would guess.
func (x *index) readStore() {
	if len(x.history.Writes) == 0 {
		return
	}
	places := prefixes{writes: map[int64]string{}, namespaced: map[string][]resource{},
		cluster: map[string][]resource{}}
	for _, w := range x.history.Writes {
		places.writes[w.Revision] = w.Key
	}
	x.eachObject(places.learn)
	for i := range x.history.Writes {
		w := &x.history.Writes[i]
		for _, k := range places.keys(w.Key) {
			how := set
			if w.Deleted {
				how = gone
			}
			o := x.object(k)
			o.changes = append(o.changes, change{key: k, revision: w.Revision, how: how, evidence: Evidence{Write: w},
				stored: true})
		}
	}
	if !x.history.Complete {
		return
	}
	horizon := x.horizon()
	for k, o := range x.objects {
		of := places.cluster
		if k.namespace != "" {
			of = places.namespaced
		}
		for _, resources := range of {
			o.stored = o.stored || slices.Contains(resources, k.resource)
		}
		if o.stored { // what was confirmed and is not in the store was not done
			o.changes = slices.DeleteFunc(o.changes, func(c change) bool { return !c.stored && c.revision <= horizon })
		}
	}
}

// horizon is the newest revision of which the store has told.
func (x *index) horizon() int64 {
	newest := int64(0)
	for _, w := range x.history.Writes {
		newest = max(newest, w.Revision)
	}
	return newest
}

// eachObject calls f with every object that a client was told of.
func (x *index) eachObject(f func(key, Object)) {
	for _, o := range x.ops {
		if o.outcome() != done {
			continue
		}
		for _, item := range o.Objects {
			f(key{o.resource, item.Namespace, item.Name}, item)
		}
	}
	for _, s := range x.streams {
		for _, e := range s.Events {
			f(s.keyOf(e.Object), e.Object)
		}
	}
}

// prefixes is where in the store the objects of resources are.
type prefixes struct {
	writes              map[int64]string // keys, by revision
	namespaced, cluster map[string][]resource
}

// learn finds the prefix of a resource by the write that an object comes from.
func (p prefixes) learn(k key, o Object) {
	stored, ok := p.writes[o.Revision]
	if !ok || o.Name == "" {
		return
	}
	of, suffix := p.cluster, "/"+o.Name
	if o.Namespace != "" {
		of, suffix = p.namespaced, "/"+o.Namespace+"/"+o.Name
	}
	if prefix, ok := strings.CutSuffix(stored, suffix); ok && !slices.Contains(of[prefix], k.resource) {
		of[prefix] = append(of[prefix], k.resource)
	}
}

// keys returns which objects are at a place in the store.
func (p prefixes) keys(stored string) (keys []key) {
	i := strings.LastIndexByte(stored, '/')
	if i < 0 {
		return nil
	}
	name, rest := stored[i+1:], stored[:i]
	for _, r := range p.cluster[rest] {
		keys = append(keys, key{r, "", name})
	}
	j := strings.LastIndexByte(rest, '/')
	if j < 0 {
		return keys
	}
	for _, r := range p.namespaced[rest[:j]] {
		keys = append(keys, key{r, rest[j+1:], name})
	}
	return keys
}
