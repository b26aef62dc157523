package checkers

import (
	"cmp"
	"slices"
)

// moments returns between which revisions the initial events are the state: from low,
// the newest of them, and before high, which was told later. A bookmark tells it.
func (w *watching) moments(s start, first int) (low, high int64, newest *Event) {
	low = s.least
	for i := range first {
		if e := &w.Events[i]; newest == nil || e.Object.Revision > newest.Object.Revision {
			low, newest = max(low, e.Object.Revision), e
		}
	}
	if s.ended && first < len(w.Events) && w.Events[first].Type == eventBookmark {
		newest = &w.Events[first]
		return newest.Object.Revision, newest.Object.Revision + 1, newest
	}
	return low, w.leastAfter()[first], newest
}

// snapshot judges that the initial events are the state at one moment. It returns the
// latest revision that this may be, after which every event must be told, false if
// nothing is known of it. Only what comes after the initial events shows that they were all
// told: a watch that was cancelled after the first of a and b may leave out b.
func (w *watching) snapshot(s start, first int) (int64, bool) {
	if s.after > 0 {
		return s.after, true
	}
	low, high, newest := w.moments(s, first)
	switch {
	case low == 0 && high == endless:
		return 0, false
	case !s.initial: // it begins anywhere before its first event
		return high - 1, true
	}
	told := slices.ContainsFunc(w.Events[first:], func(e Event) bool { return e.Type != eventError })
	// The changes that make the initial events wrong or right, and for how many objects
	// they are wrong, going through the moments they may be of.
	var changes []*change
	var wrong *change
	missing := map[key]*change{}
	for _, k := range w.index.keys {
		if !w.covers(k) {
			continue
		}
		o := w.index.objects[k]
		c, shown := o.last(low), w.view[k]
		if shown != nil && c != nil && c.revision > shown.Object.Revision {
			w.fail(append(w.of(shown, newest), c.evidence), "the initial events have %s at revision %d and something at revision %d, but it was changed at %d",
				k, shown.Object.Revision, low, c.revision)
			return 0, false
		}
		if shown == nil && !told {
			continue
		}
		if shown == nil && c != nil && w.stays(o, c) {
			missing[k], wrong = c, c
		}
		for c := o.next(low); c != nil && c.revision < high; c = o.next(c.revision) {
			if shown != nil {
				high = c.revision
				break
			}
			changes = append(changes, c)
		}
	}
	if moment := w.latest(low, high, changes, missing); moment >= low {
		return moment, true
	}
	w.fail(append(w.of(newest), wrong.evidence), "the initial events leave out an object that was there at revision %d", wrong.revision)
	return 0, false
}

// latest returns the latest revision, from low and before high, at which no object is
// missing that was surely there, one before low if there is none.
func (w *watching) latest(low, high int64, changes []*change, missing map[key]*change) int64 {
	moment := low - 1
	slices.SortFunc(changes, func(a, b *change) int { return cmp.Compare(a.revision, b.revision) })
	at := low
	for _, c := range changes {
		if c.revision >= high {
			break
		}
		if len(missing) == 0 {
			moment = c.revision - 1
		}
		at = c.revision
		if w.stays(w.index.objects[c.key], c) {
			missing[c.key] = c
		} else {
			delete(missing, c.key)
		}
	}
	switch {
	case len(missing) > 0:
		return moment
	case high == endless:
		return at
	}
	return high - 1
}

// surely reports whether the watch surely selects an object as it was written.
func (w *watching) surely(o *object, c *change) bool {
	if w.hidden {
		return false
	}
	content, ok := o.contents[c.revision]
	return w.labels == nil || ok && w.selects(content)
}

// stays reports whether the watch surely selects an object from a change on, up to
// the next that is known: between them there may be others.
func (w *watching) stays(o *object, c *change) bool {
	if c.how != set || !w.surely(o, c) {
		return false
	}
	next := o.next(c.revision)
	if o.stored || next == nil {
		return o.stored
	}
	uid := o.contents[c.revision].UID
	return w.labels == nil && uid != "" && uid == o.contents[next.revision].UID
}

// complete judges that every known write after a revision was told, as long as
// anything later was.
func (w *watching) complete(base int64, first int) {
	until, newest := base, (*Event)(nil)
	told := map[key][]*Event{}
	for i := range w.Events {
		e := &w.Events[i]
		if e.Object.Revision > until {
			until, newest = e.Object.Revision, e
		}
		if i >= first && e.Object.Name != "" {
			told[w.keyOf(e.Object)] = append(told[w.keyOf(e.Object)], e)
		}
	}
	for _, k := range w.index.keys {
		if w.covers(k) {
			w.followed(w.index.objects[k], told[k], base, until, newest)
		}
	}
}

// followed judges that the writes of one object after base, until a revision, were told.
func (w *watching) followed(o *object, told []*Event, base, until int64, newest *Event) {
	last := w.view[o.key] // what the watch shows of the object
	for c := o.next(base); c != nil && c.revision <= until; c = o.next(c.revision) {
		for len(told) > 0 && told[0].Object.Revision < c.revision {
			last, told = told[0], told[1:]
		}
		var now *Event
		if len(told) > 0 && told[0].Object.Revision == c.revision {
			now = told[0]
		}
		shown := last != nil && last.Type != eventDeleted
		content, whole := o.contents[c.revision]
		matches := whole && w.selects(content) && !w.hidden
		switch {
		case now == nil && (shown || c.how == set && w.surely(o, c) || c.how != set && w.all()): // what is removed was there
			w.fail(append(w.of(last, newest), c.evidence), "a watch has left out the change of %s at revision %d, and told of revision %d", o.key, c.revision, until)
		case now == nil:
		case now.Type == eventDeleted && c.how == set && matches:
			w.fail(append(w.of(now), c.evidence), "an object is DELETED that was changed and still is selected")
		case now.Type != eventDeleted && c.how == set && whole && !w.selects(content):
			w.fail(append(w.of(now), c.evidence), "an object has left the selector, and is not DELETED but %s", now.Type)
		}
	}
}
