package report

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"snowglobe.test/envtest/trace"
)

// kinds are the kinds of events, as the page and the trace events name them.
var kinds = []string{"note", "stage", "signal", "hook", "check", "request", "fault", "answer", "watch", "write", "turn"}

// field is a fact about an event.
type field struct{ key, value string }

// look is how an event looks in its lane: its kind, a few words, and all its facts.
type look struct {
	kind, label string
	fields      []field
}

// describe returns the look of an event. It is an error if its type is not known here.
func describe(e trace.Event) (look, error) {
	switch e := e.(type) {
	case trace.Note:
		text, _ := cutNote(e.Text)
		return look{"note", text, nil}, nil
	case trace.Stage:
		return look{"stage", failing(e.Name, e.Err), fields("phase", string(e.Phase), "error", message(e.Err))}, nil
	case trace.Signal:
		return look{"signal", e.Name, nil}, nil
	case trace.Hook:
		return look{"hook", hookLabel(e), fields("hook", e.Name, "kind", string(e.Kind), "phase", string(e.Phase), "error", message(e.Err))}, nil
	case trace.Check:
		return look{"check", verdict(e.OK), fields("check", e.Name, "endpoint", e.Endpoint, "reason", e.Reason)}, nil
	case trace.Request:
		return describeRequest(e), nil
	case trace.Fault:
		return describeFault(e), nil
	case trace.Answer:
		return describeAnswer(e), nil
	case trace.WatchEvent:
		return describeWatchEvent(e), nil
	case trace.Write:
		return look{"write", fmt.Sprintf("%s %s @%d", e.Verb(), shortKey(e.Key), e.Revision), fields("key", e.Key, "revision", number(e.Revision))}, nil
	case trace.Turn:
		return describeTurn(e), nil
	}
	return look{}, fmt.Errorf("an event of type %T has no lane", e)
}

// hookLabel says what a hook does in its lane, which has its name.
func hookLabel(e trace.Hook) string {
	switch {
	case e.Err != nil:
		return failing("failed", e.Err)
	case e.Phase == trace.Start:
		return "starts"
	case e.Phase == trace.End:
		return "ran"
	}
	return string(e.Phase)
}

func describeRequest(e trace.Request) look {
	state := status(e.Code, e.Err)
	if e.Phase == trace.Start {
		state = string(e.Phase)
	}
	took := ""
	if e.Phase == trace.End {
		took = e.Duration.String()
	}
	return look{"request", joined(" ", state, e.Verb, shortURI(e.URI)), fields(
		"request", e.Method+" "+e.URI, "phase", string(e.Phase), "status", status(e.Code, e.Err), "error", message(e.Err), "took", took,
		"user", e.User, "user agent", e.UserAgent, "verb", e.Verb, "answered by", e.Server)}
}

// clientPath is the point that is between a client and the servers. A client may be several users.
const clientPath = "client"

func describeFault(e trace.Fault) look {
	label := joined(" ", e.Action, e.Verb, e.Resource, joined("/", e.Namespace, e.Name))
	if e.Name == "" && e.Resource == "" {
		label = joined(" ", label, shortKey(e.Key))
	}
	if user := shortWord(e.Caller); e.Point == clientPath && user != e.Name {
		label = joined(" as ", label, user)
	}
	return look{"fault", failing(label, e.Err), fields(
		"rule", e.Rule, "action", e.Action, "phase", string(e.Phase), "error", message(e.Err), "point", joined(" ", e.Point, e.OperationPhase),
		"server", e.Server, "verb", e.Verb, "resource", e.Resource, "object", joined("/", e.Namespace, e.Name), "key", e.Key,
		"caller", e.Caller, "occurrence", number(int64(e.Occurrence)))}
}

func describeAnswer(e trace.Answer) look {
	return look{"answer", joined(" ", status(e.Code, e.Err), e.Reason, e.Method, shortURI(e.URI)), fields(
		"request", e.Method+" "+e.URI, "status", joined(" ", status(e.Code, e.Err), e.Reason), "error", message(e.Err),
		"client", e.Client, "list's revision", number(e.Revision), "objects", objects(e.Objects))}
}

func describeWatchEvent(e trace.WatchEvent) look {
	what := cmp.Or(e.Type, "end")
	return look{"watch", failing(joined(" ", what, e.Reason, place(e.Object)), e.Err), fields(
		"event", joined(" ", what, e.Reason), "object", objects([]trace.Object{e.Object}), "error", message(e.Err),
		"client", e.Client, "watch", fmt.Sprintf("%s #%d", e.URI, e.Watch), "revision", number(e.Object.Revision))}
}

func describeTurn(e trace.Turn) look {
	object := joined("/", e.Namespace, e.Name)
	what := cmp.Or(object, shortKey(e.Key))
	return look{"turn", joined(" ", strconv.Itoa(e.Number), e.Phase, e.Verb, what), fields(
		"turn", strconv.Itoa(e.Number), "cause", turnCause(e.Cause), "point", joined(" ", e.Point, e.Phase), "server", e.Server, "verb", e.Verb,
		"resource", e.Resource, "object", object, "key", e.Key, "caller", e.Caller, "occurrence", number(int64(e.Occurrence)))}
}

func turnCause(number int) string {
	if number == 0 {
		return "a timer"
	}
	return "turn " + strconv.Itoa(number)
}

// noteForm is what a note is to a script.
type noteForm int

const (
	phase noteForm = iota
	command
	remark
)

// cutNote takes a script's mark off a note.
func cutNote(text string) (string, noteForm) {
	if rest, ok := strings.CutPrefix(text, "# "); ok {
		return rest, phase
	}
	if rest, ok := strings.CutPrefix(text, "> "); ok {
		return rest, command
	}
	return text, remark
}

// crashed is the name of what a note says has crashed; empty for any other note.
func crashed(note trace.Note) string {
	name, _, found := strings.Cut(note.Text, " crashed: ")
	if !found || strings.ContainsAny(name, " \n") {
		return ""
	}
	return name
}

// fields takes keys and values in turn and leaves out what has no value.
func fields(keysAndValues ...string) []field {
	var all []field
	for i := 0; i < len(keysAndValues); i += 2 {
		if keysAndValues[i+1] != "" {
			all = append(all, field{keysAndValues[i], keysAndValues[i+1]})
		}
	}
	return all
}

func verdict(ok bool) string {
	if ok {
		return "ok"
	}
	return "failing"
}

func status(code int, err error) string {
	switch {
	case code != 0:
		return strconv.Itoa(code)
	case err != nil:
		return "broken"
	}
	return ""
}

func failing(text string, err error) string {
	if err != nil {
		return text + ": " + err.Error()
	}
	return text
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// number is a number's text; "" for 0, which means that there is none.
func number(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// place says which object an event is about.
func place(o trace.Object) string {
	text := joined("/", o.Namespace, o.Name)
	if o.Revision > 0 {
		text += fmt.Sprintf(" @%d", o.Revision)
	}
	return strings.TrimSpace(text)
}

// maxObjects is how many objects of a list the page names.
const maxObjects = 20

func objects(all []trace.Object) string {
	var words []string
	for i, o := range all {
		if i == maxObjects {
			words = append(words, fmt.Sprintf("and %d more", len(all)-i))
			break
		}
		words = append(words, joined(" ", o.Kind, place(o), o.Digest))
	}
	return strings.Join(words, ", ")
}

// shortURI is the part of a path that tells requests apart: what follows the API
// group, version and namespace, and the query without timeouts.
func shortURI(uri string) string {
	u, err := url.ParseRequestURI(uri)
	if err != nil {
		return uri
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		parts = parts[3:]
	default:
		return u.Path
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	query := u.Query()
	for _, noise := range []string{"timeout", "timeoutSeconds", "allowWatchBookmarks", "watch", "fieldManager", "force", "continue"} {
		query.Del(noise)
	}
	text := strings.Join(parts, "/")
	if rest, err := url.QueryUnescape(query.Encode()); err == nil && rest != "" {
		text += "?" + rest
	}
	return text
}

// shortKey is the end of a key in the store, without the part that its lane names.
func shortKey(key string) string {
	_, name := cutKey(key)
	return cmp.Or(name, key)
}

// cutKey splits a key in the store into the resource, with its group if the key has
// one, and the object.
func cutKey(key string) (resource, object string) {
	parts := strings.Split(strings.Trim(key, "/"), "/")
	if len(parts) > 1 {
		parts = parts[1:] // the prefix of all keys
	}
	n := 1
	if len(parts) > 2 && strings.Contains(parts[0], ".") {
		n = 2
	}
	return strings.Join(parts[:n], "/"), strings.Join(parts[n:], "/")
}

func joined(separator string, words ...string) string {
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), separator)
}
