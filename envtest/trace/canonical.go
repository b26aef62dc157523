package trace

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// WriteCanonical writes everything that could be observed from outside. Runs
// are compared by it: if they looked the same they give the same bytes.
//
// Each line is a moment of virtual time (1 ms), a lane, and what happened
// there. A lane is a client's answers, one of its watches, a hook, lifecycle
// signal or readiness check of a server, or one of the test's objects in the
// store: those that a client has created, changed or deleted. Notes share a
// lane. Each control plane has its own lanes.
//
// Moments, and events in a lane, are in the order in which they happened. In a moment,
// lanes are sorted by name. That loses nothing: either nobody can see which of two lanes was
// first, or a client can, and then its own lane shows it.
//
// Revisions also count writes that are not the test's, so the text says what one
// means to a client: default/a@3 is the third change of that object, and @12 any
// revision from the twelfth change of the test's objects up to the next.
//
// It leaves out what the server does for itself, routes inside the server,
// rules, turns, continue tokens, and timeouts that clients choose at random.
func WriteCanonical(w io.Writer, recs []Record) error {
	for _, l := range canonicalLines(recs) {
		if _, err := io.WriteString(w, l.String()+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// canonicalLines returns the lines of the canonical text, in its order.
func canonicalLines(recs []Record) []canonLine {
	c := newCanon(recs)
	var lines []canonLine
	for i, rec := range recs {
		lane, text := c.describe(rec.Event)
		if lane == "" || c.again[i] {
			continue
		}
		if c.servers && ofServer(rec.Event) {
			lane = oneLine(rec.Server) + " " + lane
		}
		if c.planes {
			lane = oneLine(rec.ControlPlane) + " " + lane
		}
		lines = append(lines, canonLine{rec.Elapsed.Truncate(moment), lane, text, i})
	}
	slices.SortStableFunc(lines, func(a, b canonLine) int {
		return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.lane, b.lane))
	})
	return lines
}

// moment is how far apart simultaneous events may be: a turn takes a little virtual
// time, and runs may differ in the number of turns before an event.
const moment = time.Millisecond

// ofServer reports whether an event belongs to one server rather than to a client.
func ofServer(e Event) bool {
	switch e.(type) {
	case Hook, Signal, Check:
		return true
	}
	return false
}

type canonLine struct {
	at         time.Duration
	lane, text string
	record     int // its index among the records
}

func (l canonLine) String() string { return elapsed(l.at) + "\t" + l.lane + "\t" + l.text }

// canon describes events in words that are the same in each run. Above all it numbers
// revisions anew.
type canon struct {
	versions map[int64]version // of every change in the store, by revision
	tests    map[string]bool   // the keys of the test's objects
	changes  []int64           // the revisions of their changes, ascending
	servers  bool              // there are records of several servers
	planes   bool              // there are records of several control planes
	again    map[int]bool      // indices of changes that another control plane has recorded already
}

// version is one change of a key.
type version struct {
	key    string
	number int // 1 for the first
}

func newCanon(recs []Record) *canon {
	c := &canon{versions: map[int64]version{}, tests: map[string]bool{}, again: map[int]bool{}}
	numbers, servers := map[string]int{}, map[string]bool{}
	var writes []Write
	for i, rec := range recs {
		if rec.Server != "" {
			servers[rec.Server] = true
		}
		c.planes = c.planes || rec.ControlPlane != recs[0].ControlPlane
		if w, ok := rec.Event.(Write); ok {
			if _, seen := c.versions[w.Revision]; seen {
				c.again[i] = true
				continue
			}
			numbers[w.Key]++
			c.versions[w.Revision] = version{w.Key, numbers[w.Key]}
			writes = append(writes, w)
		}
	}
	c.servers = len(servers) > 1
	for _, rec := range recs {
		if a, ok := rec.Event.(Answer); ok && a.Writes() {
			for _, o := range a.Objects {
				c.tests[c.versions[o.Revision].key] = true
			}
		}
	}
	delete(c.tests, "")
	for _, w := range writes {
		if c.tests[w.Key] {
			c.changes = append(c.changes, w.Revision)
		}
	}
	slices.Sort(c.changes)
	return c
}

// Writes reports whether the request changed the objects that it returned.
func (e Answer) Writes() bool {
	return e.Code >= 200 && e.Code < 300 && slices.Contains([]string{"POST", "PUT", "PATCH", "DELETE"}, e.Method)
}

// describe returns the lane of an event, or none to leave it out, and its text.
func (c *canon) describe(e Event) (lane, text string) {
	switch e := e.(type) {
	case Answer:
		return "client " + e.Client, c.answer(e)
	case WatchEvent:
		return fmt.Sprintf("watch %s %s #%d", e.Client, c.path(e.URI), e.Watch), c.watchEvent(e)
	case Write:
		if c.tests[e.Key] {
			return "store " + e.Key, fmt.Sprintf("%s @%d", e.Verb(), c.versions[e.Revision].number)
		}
	case Hook:
		return fmt.Sprintf("hook %s %s", e.Kind, e.Name), failing(string(e.Phase), e.Err)
	case Signal:
		return "signal " + e.Name, "fired"
	case Check:
		return fmt.Sprintf("check %s %s", e.Endpoint, e.Name), map[bool]string{true: "ok", false: "failing"}[e.OK]
	case Note:
		return "note", oneLine(e.Text)
	}
	return "", ""
}

func (c *canon) answer(e Answer) string {
	words := []string{e.Method, c.path(e.URI), "->", strconv.Itoa(e.Code), e.Reason}
	if e.Revision > 0 {
		words = append(words, c.revision(e.Revision))
	}
	for _, o := range e.Objects {
		words = append(words, c.object(o))
	}
	return failing(joined(" ", words...), e.Err)
}

func (c *canon) watchEvent(e WatchEvent) string {
	if e.Type == "" {
		return failing("end", e.Err)
	}
	if e.Type == "BOOKMARK" {
		return joined(" ", e.Type, c.revision(e.Object.Revision))
	}
	return failing(joined(" ", e.Type, e.Reason, c.object(e.Object)), e.Err)
}

func failing(text string, err error) string {
	if err != nil {
		return text + ": " + oneLine(err.Error())
	}
	return text
}

// object names an object and its version.
func (c *canon) object(o Object) string {
	if o == (Object{}) {
		return ""
	}
	text := joined("/", o.Namespace, o.Name)
	if v, ok := c.versions[o.Revision]; ok {
		text += fmt.Sprintf("@%d", v.number)
	} else if o.Revision > 0 {
		text += "@?"
	}
	return joined(" ", o.Kind, text, o.Digest)
}

// revision names a revision of the whole store, such as a list's.
func (c *canon) revision(of int64) string {
	n, exact := slices.BinarySearch(c.changes, of)
	if exact {
		n++
	}
	return fmt.Sprintf("@%d", n)
}

// path returns a path and query without what differs from run to run.
func (c *canon) path(uri string) string {
	u, err := url.ParseRequestURI(uri)
	if err != nil {
		return oneLine(uri)
	}
	query := u.Query()
	query.Del("timeoutSeconds")
	query.Del("timeout")
	if query.Has("continue") {
		query.Set("continue", "...")
	}
	if n, err := strconv.ParseInt(query.Get("resourceVersion"), 10, 64); err == nil && n > 0 {
		query.Set("resourceVersion", c.revision(n))
	}
	if len(query) == 0 {
		return oneLine(u.Path)
	}
	text, err := url.QueryUnescape(query.Encode())
	if err != nil {
		text = query.Encode()
	}
	return oneLine(u.Path + "?" + text)
}
