package servers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"snowglobe.test/scenarios/engine"
)

func (s *Servers) RemoveRule() engine.Command {
	return engine.Command{
		Name:     "remove-rule",
		Formerly: "lift",
		Args:     "ACTION [POINT [KEY=VALUE]...]",
		Summary:  "remove rules of the script",
		Details: `It removes all rules that begin with these words. Operations that wait because of them
go on, and paths that they cut are restored. A rule that has not fired fails the script,
unless it is optional.`,
		Example:    "fail store/put with=unavailable\nremove-rule fail store/put\nremove-rule partition",
		NoNegation: true,
		Run: func(_ context.Context, args []string) error {
			return s.removeRules(ruleText(args))
		},
	}
}

// removeRules takes the rules that begin with the text out.
func (s *Servers) removeRules(text string) error {
	begins := func(rule *scriptRule) bool { return strings.HasPrefix(rule.String()+" ", text+" ") }
	if !slices.ContainsFunc(s.rules, begins) {
		return fmt.Errorf("%w: no rule begins with %q; the rules of the script are: %s", engine.ErrUsage, text, s.ruleNames())
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
func (s *Servers) ruleNames() string {
	var names []string
	for _, rule := range s.rules {
		names = append(names, fmt.Sprintf("%q", rule.Rule))
	}
	return orNone(names)
}
