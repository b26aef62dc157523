package virtualtime

import (
	"fmt"
	"strconv"
	"strings"

	"snowglobe.test/envtest/fault"
)

// Step is one operation of an Order.
type Step struct {
	fault.Match
	// Occurrence is which of the operations with one identity it is; 0 is any.
	Occurrence int
}

// String is the step as text.
func (s Step) String() string {
	text := s.Match.String()
	if s.Occurrence > 0 {
		text += fmt.Sprintf(" #%d", s.Occurrence)
	}
	return text
}

func (s Step) matches(op *fault.Operation) bool {
	return (s.Occurrence == 0 || s.Occurrence == op.Occurrence) && s.Covers(op)
}

// ParseStep reads a step, such as "store/put resource=configmaps name=default/a",
// with " #2" after it for the second of its identity. It is the inverse of String.
func ParseStep(text string) (Step, error) {
	var step Step
	match, occurrence, counted := cutOccurrence(text)
	if counted {
		n, err := strconv.Atoi(occurrence)
		if err != nil || n < 1 {
			return step, fmt.Errorf("step %q: after # comes a whole number above 0", text)
		}
		step.Occurrence = n
	}
	var err error
	if step.Match, err = fault.ParseMatch(match, nil); err != nil {
		return step, fmt.Errorf("step %q: %w", text, err)
	}
	return step, nil
}

// cutOccurrence cuts the "#N" off that is the last word of a step.
func cutOccurrence(text string) (match, occurrence string, ok bool) {
	text = strings.TrimSpace(text)
	at := strings.LastIndexAny(text, " \t") + 1
	occurrence, ok = strings.CutPrefix(text[at:], "#")
	if !ok || strings.HasSuffix(text, `"`) { // a quoted value may look like one
		return text, "", false
	}
	return text[:at], occurrence, true
}
