package transcript

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Exchange is a request and the answer to it, as far as that had come.
type Exchange struct {
	Server  string  `json:"server"`
	Method  string  `json:"method"`
	Path    string  `json:"path"` // with the query
	Request Message `json:"request,omitzero"`
	// Status is the code of the answer; 0 if there was none.
	Status int     `json:"status,omitempty"`
	Answer Message `json:"answer,omitzero"`
	// Events are the last events of a watch, as they came.
	Events []string `json:"events,omitempty"`
	// Open is an answer that had not ended.
	Open bool `json:"open,omitempty"`
	// Error is why there was no answer, or why it broke off.
	Error string `json:"error,omitempty"`
	// At is when the request was made, since the case began, and Took how long the answer
	// took, on the target's clock.
	At   time.Duration `json:"atNanoseconds"`
	Took time.Duration `json:"tookNanoseconds"`
	// Times is how often the same was asked and answered in a row.
	Times int `json:"times"`
}

// Message is what a person wants to know of a request or an answer.
type Message struct {
	Headers []string `json:"headers,omitempty"` // as "Name: value"
	Body    string   `json:"body,omitempty"`
}

// String is the exchange in one line, without its bodies.
func (e Exchange) String() string {
	line := e.Method + " " + e.Path + " -> " + e.Outcome()
	if e.Times > 1 {
		line += fmt.Sprintf(", %d times", e.Times)
	}
	return line
}

// Outcome is how the request was answered, such as "404 Not Found".
func (e Exchange) Outcome() string {
	var parts []string
	if e.Status != 0 {
		parts = append(parts, strings.TrimSpace(fmt.Sprint(e.Status, " ", http.StatusText(e.Status))))
	}
	if e.Error != "" {
		parts = append(parts, e.Error)
	}
	if e.Open {
		parts = append(parts, "still open")
	}
	if len(parts) == 0 {
		return "no answer yet"
	}
	return strings.Join(parts, ", ")
}

// The most that Brief says of an exchange.
const (
	briefRunes  = 300
	briefEvents = 3
)

// Brief is the exchange with the beginning of its bodies, or the last events, a line each.
func (e Exchange) Brief() string {
	lines := []string{e.String()}
	if e.Request.Body != "" {
		lines = append(lines, "> "+brief(e.Request.Body))
	}
	if e.Answer.Body != "" {
		lines = append(lines, "< "+brief(e.Answer.Body))
	}
	for _, event := range e.Events[max(0, len(e.Events)-briefEvents):] {
		lines = append(lines, "< "+brief(event))
	}
	return strings.Join(lines, "\n")
}

// Whole is the exchange with all that is known of it.
func (e Exchange) Whole() string {
	lines := []string{e.String()}
	for _, part := range []struct {
		mark string
		Message
	}{{"> ", e.Request}, {"< ", e.Answer}} {
		for _, text := range append(slices.Clone(part.Headers), part.Body) {
			if text != "" {
				lines = append(lines, part.mark+strings.ReplaceAll(text, "\n", "\n"+part.mark))
			}
		}
	}
	for _, event := range e.Events {
		lines = append(lines, "< "+event)
	}
	return strings.Join(lines, "\n")
}

// brief is the beginning of a text, in one line.
func brief(text string) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > briefRunes {
		return string(runes[:briefRunes]) + "..."
	}
	return string(runes)
}
