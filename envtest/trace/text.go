package trace

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// TextOptions says how a timeline looks. The zero value is short and without colour.
type TextOptions struct {
	// Color adds ANSI colours.
	Color bool
	// Verbose also shows successful requests of the server to itself.
	Verbose bool
}

// loopbackUser is the user as which the API server calls itself.
const loopbackUser = "system:apiserver"

// The greatest width of each column. A longer cell shifts the rest of its row.
const (
	maxSubjectColumns = 56
	maxNameColumns    = 20
)

// kindColumns fits the longest kind of event.
const kindColumns = len("request")

// WriteText writes a timeline with a line per record, in columns: time since the start,
// control plane and API server if there are several, kind, subject, state and details.
func WriteText(w io.Writer, recs []Record, opts TextOptions) error {
	var rows []row
	hidden := 0
	began := map[span]time.Duration{}
	for _, rec := range recs {
		if !opts.Verbose && Routine(rec.Event) {
			hidden++
			continue
		}
		l := lineOf(rec.Event)
		l.detail = joined("  ", l.detail, measure(began, rec))
		rows = append(rows, row{line: l, elapsed: elapsed(rec.Elapsed), plane: oneLine(rec.ControlPlane), server: oneLine(serverOf(rec))})
	}
	var out bytes.Buffer
	columns := layout(rows)
	for _, r := range rows {
		r.write(&out, columns, opts.Color)
	}
	if hidden > 0 {
		fmt.Fprintf(&out, "%*s  (not shown: %d routine requests of the server to itself)\n", columns.elapsed, "", hidden)
	}
	_, err := w.Write(out.Bytes())
	return err
}

// serverOf returns which of several API servers a record is about.
func serverOf(rec Record) string {
	if f, ok := rec.Event.(Fault); ok && rec.Server == "" {
		return f.Server
	}
	return rec.Server
}

// Routine reports whether an event is a server's successful request to itself, one of hundreds in every boot.
func Routine(e Event) bool {
	r, ok := e.(Request)
	return ok && r.User == loopbackUser && r.Err == nil && r.Code < 500 && r.Code != 429
}

// span identifies what starts and ends: a start and its end share it.
type span struct{ plane, server, kind, name string }

// measure remembers starts and, for an end, returns the time since its start.
func measure(began map[span]time.Duration, rec Record) string {
	var key span
	var phase Phase
	switch e := rec.Event.(type) {
	case Stage:
		key, phase = span{rec.ControlPlane, rec.Server, "stage", e.Name}, e.Phase
	case Hook:
		key, phase = span{rec.ControlPlane, rec.Server, string(e.Kind), e.Name}, e.Phase
	default:
		return ""
	}
	switch start, ok := began[key]; {
	case phase == Start:
		began[key] = rec.Elapsed
	case phase == End && ok:
		delete(began, key)
		return took(rec.Elapsed - start)
	}
	return ""
}

type row struct {
	line
	elapsed, plane, server string
}

// widths are those of the columns, in characters; 0 leaves out plane or server.
type widths struct{ elapsed, plane, server, subject, state int }

func layout(rows []row) widths {
	var w widths
	planes, servers := map[string]bool{}, map[string]bool{}
	for _, r := range rows {
		planes[r.plane] = true
		if r.server != "" {
			servers[r.server] = true
		}
		w.elapsed = max(w.elapsed, len(r.elapsed))
		w.plane = max(w.plane, min(utf8.RuneCountInString(r.plane), maxNameColumns))
		w.server = max(w.server, min(utf8.RuneCountInString(r.server), maxNameColumns))
		if r.state == "" {
			continue // nothing follows the subject, so it may be of any length
		}
		w.subject = max(w.subject, min(utf8.RuneCountInString(r.subject), maxSubjectColumns))
		w.state = max(w.state, len(r.state))
	}
	if len(planes) < 2 {
		w.plane = 0
	}
	if len(servers) < 2 {
		w.server = 0
	}
	return w
}

// write appends the row. Colours go around padded cells, so as not to count as width.
func (r row) write(out *bytes.Buffer, w widths, color bool) {
	paint := func(code, s string) string {
		if !color || code == "" || s == "" {
			return s
		}
		return "\x1b[" + code + "m" + s + "\x1b[0m"
	}
	cells := []string{paint("2", fmt.Sprintf("%*s", w.elapsed, r.elapsed))}
	if w.plane > 0 {
		cells = append(cells, paint("36", fmt.Sprintf("%-*s", w.plane, r.plane)))
	}
	if w.server > 0 {
		cells = append(cells, paint("36", fmt.Sprintf("%-*s", w.server, r.server)))
	}
	cells = append(cells, paint("2", fmt.Sprintf("%-*s", kindColumns, r.kind)))
	subject, state := fmt.Sprintf("%-*s", w.subject, r.subject), fmt.Sprintf("%-*s", w.state, r.state)
	switch {
	case r.state == "":
		cells = append(cells, paint(r.tone.code(), r.subject))
	case r.detail == "":
		cells = append(cells, subject, paint(r.tone.code(), r.state))
	default:
		cells = append(cells, subject, paint(r.tone.code(), state), r.detail)
	}
	out.WriteString(strings.Join(cells, "  "))
	out.WriteByte('\n')
}

// code is the ANSI code of a tone.
func (t Tone) code() string {
	switch t {
	case Good:
		return "32"
	case Bad:
		return "31"
	case Waiting:
		return "33"
	case Strong:
		return "1"
	}
	return ""
}

// elapsed formats a time since the start, such as "+1.005s" or "+1h0m2.500s".
func elapsed(d time.Duration) string {
	d = d.Truncate(time.Millisecond)
	whole, rest := "", d
	if d >= time.Minute {
		whole = strings.TrimSuffix(d.Truncate(time.Minute).String(), "0s")
		rest = d % time.Minute
	}
	return fmt.Sprintf("+%s%d.%03ds", whole, rest/time.Second, rest%time.Second/time.Millisecond)
}
