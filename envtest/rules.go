package envtest

import (
	"errors"
	"fmt"
	"strings"

	"snowglobe.test/envtest/fault"
)

// maxRulesNamed is how many rules an error names.
const maxRulesNamed = 4

// withFired returns what adds to an error what the rules of now have done until
// then, but for those that it names: many errors come of what a rule did long before.
func (cp *ControlPlane) withFired() func(error) error {
	entries := cp.faults.Rules()
	return func(err error) error {
		var said []string
		for _, entry := range entries {
			named := errors.Is(err, &fault.RuleError{Rule: entry.Rule()})
			if times, last := entry.Last(); times > 0 && !named {
				said = append(said, fmt.Sprintf("the rule %q has fired %d times, at last at %s", entry.Rule(), times, last))
			}
		}
		if more := len(said) - maxRulesNamed; more > 0 {
			said = append(said[:maxRulesNamed], fmt.Sprintf("and %d more", more))
		}
		if len(said) == 0 {
			return err
		}
		return fmt.Errorf("%w; %s", err, strings.Join(said, "; "))
	}
}

// rulesInForce lists the rules, to end an error with.
func (cp *ControlPlane) rulesInForce() string {
	var rules []string
	for _, entry := range cp.faults.Rules() {
		rules = append(rules, fmt.Sprintf("%q", entry.Rule()))
	}
	if len(rules) == 0 {
		return ""
	}
	return "; rules in force: " + strings.Join(rules, ", ")
}

// unfired is an error for each rule that never fired, but should have.
func (cp *ControlPlane) unfired() error {
	var errs []error
	for _, rule := range cp.faults.Unfired() {
		errs = append(errs, &fault.UnfiredError{Rule: rule})
	}
	return errors.Join(errs...)
}
