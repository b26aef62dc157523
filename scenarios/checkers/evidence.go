package checkers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxWords is the longest text from outside that a line of evidence has.
const maxWords = 200

// String says on one line who asked or was told what.
func (e Evidence) String() string {
	switch {
	case e.Operation != nil:
		return e.Operation.String()
	case e.Event != nil && e.Watch != nil:
		return fmt.Sprintf("%s  %s was told %s by its watch of %s", span(e.Event.Order, e.Event.Order), who(e.Watch.Session, e.Watch.Server), e.Event, e.Watch.place())
	case e.Watch != nil:
		return fmt.Sprintf("%s  %s began its %s", span(e.Watch.Start, e.Watch.Start), who(e.Watch.Session, e.Watch.Server), e.Watch)
	case e.Write != nil:
		return fmt.Sprintf("%s  the store had %s", span(e.Write.Order, e.Write.Order), e.Write)
	}
	return ""
}

// order is when the evidence began.
func (e Evidence) order() int64 {
	switch {
	case e.Operation != nil:
		return e.Operation.Start
	case e.Event != nil:
		return e.Event.Order
	case e.Watch != nil:
		return e.Watch.Start
	}
	return e.Write.Order
}

// sorted puts evidence in order.
func sorted(all ...Evidence) []Evidence {
	slices.SortStableFunc(all, func(a, b Evidence) int { return cmp.Compare(a.order(), b.order()) })
	return all
}

// span shows when something was, in the order of the history.
func span(start, end int64) string {
	switch {
	case end == 0:
		return fmt.Sprintf("[%d..]", start)
	case start == end:
		return fmt.Sprintf("[%d]", start)
	}
	return fmt.Sprintf("[%d..%d]", start, end)
}

// who names a client and its server.
func who(session, server string) string {
	session = cmp.Or(clean(session), "a client")
	switch server {
	case "":
		return session
	case SomeServer:
		return session + " at some server"
	}
	return session + " at " + clean(server)
}

// String says on one line who asked what, and what the answer was.
func (op Operation) String() string {
	asked := op.Method + " " + op.URI
	if r, ok := parseRequest(op.Method, op.URI); ok {
		if r.verb == verbCreate && r.name == "" {
			r.name = op.Sent.Name
		}
		asked = r.asked()
	}
	var with []string
	if op.Sent.Revision > 0 {
		with = append(with, fmt.Sprintf("if at revision %d", op.Sent.Revision))
	}
	if op.Method == "DELETE" && op.Sent.UID != "" {
		with = append(with, "if its UID is "+clean(op.Sent.UID))
	}
	if op.DryRun {
		with = append(with, "as a dry run")
	}
	asked = strings.Join(append([]string{clean(asked)}, with...), " ")
	when := ""
	if op.At > 0 {
		when = fmt.Sprintf(" (%s)", (op.At - op.Took).Round(time.Millisecond))
	}
	return fmt.Sprintf("%s%s  %s asked to %s: %s", span(op.Start, op.End), when, who(op.Session, op.Server), asked, op.answer())
}

// asked is the request with what decides which answer is right.
func (r request) asked() string {
	text := r.String()
	for _, name := range []string{"resourceVersion", "resourceVersionMatch", "labelSelector", "fieldSelector", "limit", "sendInitialEvents"} {
		if value := r.query.Get(name); value != "" {
			text += " " + name + "=" + value
		}
	}
	if r.query.Get("continue") != "" {
		text += " continue=..."
	}
	return text
}

// answer says what the answer was.
func (op Operation) answer() string {
	switch {
	case op.Err != "":
		return "no answer is known: " + clean(op.Err)
	case op.End == 0 || op.Code == 0:
		return "no answer is known"
	}
	text := strings.TrimSpace(fmt.Sprintf("%d %s", op.Code, clean(op.Reason)))
	if op.Revision > 0 {
		text += fmt.Sprintf(", list at revision %d", op.Revision)
		if op.Continue != "" {
			text += " and more"
		}
	}
	const maxShown = 6
	for i, o := range op.Objects {
		if i == maxShown {
			return fmt.Sprintf("%s and %d more objects", text, len(op.Objects)-i)
		}
		text += ", " + describe(o)
	}
	if op.About.UID != "" {
		text += ", about UID " + clean(op.About.UID)
	}
	return text
}

// describe says which object, and how it was.
func describe(o Object) string {
	text := clean(strings.TrimPrefix(o.Namespace+"/"+o.Name, "/"))
	if o.Revision > 0 {
		text += fmt.Sprintf(" at revision %d", o.Revision)
	}
	for _, more := range []struct{ name, value string }{{"UID ", o.UID}, {"labels ", o.Labels}, {"finalizers ", o.Finalizers}} {
		if more.value != "" {
			text += ", " + more.name + clean(more.value)
		}
	}
	if o.Deleting {
		text += ", being deleted"
	}
	return strings.TrimSpace(strings.TrimPrefix(text, ", "))
}

// String says what the event tells.
func (e Event) String() string {
	text := clean(e.Type)
	switch {
	case e.Type == eventError:
		return strings.TrimSpace(text + " " + clean(e.Reason))
	case e.InitialEventsEnd:
		text += " (end of the initial events)"
	}
	return text + " " + describe(e.Object)
}

// String says what is watched, and how.
func (w Watch) String() string {
	r, ok := parseRequest("GET", w.URI)
	if !ok {
		return clean("watch of " + w.URI)
	}
	r.verb = verbWatch
	text := "watch of " + strings.TrimPrefix(r.asked(), verbWatch+" ")
	if r.query.Get("resourceVersion") == "" {
		text += " without a resourceVersion"
	}
	return clean(text)
}

// place says what is watched.
func (w Watch) place() string {
	r, ok := parseRequest("GET", w.URI)
	if !ok {
		return clean(w.URI)
	}
	r.verb = ""
	return clean(r.String())
}

// String says what was written.
func (w Write) String() string {
	how := "changed"
	switch {
	case w.Created:
		how = "created"
	case w.Deleted:
		how = "deleted"
	}
	return fmt.Sprintf("%s %s at revision %d", clean(w.Key), how, w.Revision)
}

// clean makes one short line of text from outside.
func clean(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, text)
	if runes := []rune(text); len(runes) > maxWords {
		return string(runes[:maxWords]) + "..."
	}
	return text
}
