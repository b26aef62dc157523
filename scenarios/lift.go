package scenarios

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

var liftCommand = command{
	name:  "lift",
	args:  "ACTION [POINT [KEY=VALUE]...]",
	least: 1, most: anyNumber,
	summary: "remove rules of the script",
	details: `It removes all rules that begin with these words. Operations that wait because of them
go on, and paths that they cut are restored. A rule that has not fired fails the script,
unless it is optional.`,
	example:    "fail store/put with=unavailable\nlift fail store/put\nlift partition",
	noNegation: true,
	run: func(_ context.Context, s *session, args []string) error {
		return s.lift(ruleText(args))
	},
}

// lift takes the rules that begin with the text out.
func (s *session) lift(text string) error {
	begins := func(rule *scriptRule) bool { return strings.HasPrefix(rule.String()+" ", text+" ") }
	if !slices.ContainsFunc(s.rules, begins) {
		return fmt.Errorf("%w: no rule begins with %q; the rules of the script are: %s", errUsage, text, s.ruleNames())
	}
	var err error
	s.rules = slices.DeleteFunc(s.rules, func(rule *scriptRule) bool {
		if !begins(rule) {
			return false
		}
		if rule.entry != nil {
			rule.entry.Remove()
		}
		if err == nil {
			err = rule.unfired()
		}
		return true
	})
	return err
}

// ruleNames lists the rules of the script for an error.
func (s *session) ruleNames() string {
	if len(s.rules) == 0 {
		return "none"
	}
	var names []string
	for _, rule := range s.rules {
		names = append(names, fmt.Sprintf("%q", rule.Rule))
	}
	return strings.Join(names, ", ")
}
