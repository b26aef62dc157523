package transcript

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"snowglobe.test/internal/redact"
)

// shown is the exchange for people.
func (e *exchange) shown(since time.Time) Exchange {
	shown := Exchange{
		Server: e.server, Method: e.method, Path: redact.Text(e.path), Status: e.status,
		Request: Message{lines(e.requestHead), e.request.shown(e.requestHead)},
		Answer:  Message{lines(e.answerHead), e.answer.shown(e.answerHead)},
		At:      e.begun.Sub(since), Took: e.took, Times: e.times, Open: !e.ended && e.status != 0,
	}
	if e.err != nil {
		shown.Error = redact.Text(e.err.Error())
	}
	for _, event := range e.events {
		shown.Events = append(shown.Events, event.shown(e.answerHead))
	}
	return shown
}

// shown is the beginning of the body if it is text.
func (c *content) shown(head http.Header) string {
	if c.size == 0 {
		return ""
	}
	whole := len(c.text) == c.size
	text := string(c.text)
	if !whole { // the last character may be incomplete
		text = strings.ToValidUTF8(text, "")
	}
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return fmt.Sprintf("(%d bytes of %s)", c.size, head.Get("Content-Type"))
	}
	text = strings.TrimRight(redact.Text(text), "\n")
	if whole && len(text) <= shownBytes {
		return text
	}
	return fmt.Sprintf("%s... (%d bytes)", strings.ToValidUTF8(text[:min(len(text), shownBytes)], ""), c.size)
}

// told are the headers of requests that are shown: others may be anybody's credentials.
var told = []string{
	"Accept", "Accept-Encoding", "Content-Type", "Authorization", "If-None-Match", "If-Match", "Origin", "Upgrade",
	"X-Remote-User", "X-Remote-Group",
}

const impersonation = "Impersonate-"

func requestHeaders(all http.Header) http.Header {
	shown := http.Header{}
	for name, values := range all {
		if slices.Contains(told, name) || strings.HasPrefix(name, impersonation) {
			shown[name] = slices.Clone(values)
		}
	}
	return shown
}

// dull are the headers of answers that say nothing, or too much.
var dull = []string{"Date", "Content-Length", "Set-Cookie"}

func answerHeaders(all http.Header) http.Header {
	shown := all.Clone()
	for _, name := range dull {
		shown.Del(name)
	}
	return shown
}

// lines are the headers, sorted, without credentials.
func lines(head http.Header) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(head)) {
		for _, value := range head[name] {
			if name == "Authorization" {
				value = credentials(value)
			}
			all = append(all, redact.Text(name+": "+value))
		}
	}
	return all
}

// credentials are a header Authorization of which nothing can be learnt but its scheme, and
// whether two are the same.
func credentials(value string) string {
	scheme, rest, _ := strings.Cut(value, " ")
	if strings.EqualFold(scheme, "Bearer") && redact.Text(value) != value {
		return value // to be redacted
	}
	return fmt.Sprintf("%s (%d characters)", scheme, len(rest))
}
