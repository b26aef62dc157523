package fault

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// Plan is a list of rules. As text it has one on each line; empty lines and what
// follows a # are comments.
type Plan []Rule

// String is the plan as text, without comments.
func (p Plan) String() string {
	var text strings.Builder
	for _, r := range p {
		text.WriteString(r.String() + "\n")
	}
	return text.String()
}

// Validate says everything that is wrong with the plan.
func (p Plan) Validate(known Names) error {
	var errs []error
	for _, r := range p {
		errs = append(errs, r.Validate(known))
	}
	return errors.Join(errs...)
}

// ParsePlan reads a plan. file is what errors call it; each is a *SyntaxError,
// and all of them are said at once.
func ParsePlan(file, text string, known Names) (Plan, error) {
	p := &lineParser{file: file, known: known}
	var plan Plan
	for line := range strings.Lines(text) {
		p.number++
		if rule, ok := p.line(strings.TrimRight(line, "\r\n")); ok {
			plan = append(plan, rule)
		}
	}
	if len(p.errs) > 0 {
		return nil, errors.Join(p.errs...)
	}
	return plan, nil
}

// ReadPlan reads the plan in a file.
func ReadPlan(file string, known Names) (Plan, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the plan of faults: %w", err)
	}
	return ParsePlan(file, string(text), known)
}
