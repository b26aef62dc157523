package scenarios

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"snowglobe.test/envtest/fault"
)

// ruleArgs is the synopsis of a rule after its action.
const ruleArgs = "POINT [KEY=VALUE]... [optional]"

const ruleDetails = `The arguments are those of the rule (see "snowglobe points"). A rule that is added while no
API server is running is in force from the first moment of the next start. It ends when
it is lifted, or when the server is shut down. A rule that has not fired by then
fails the script, unless its last word is optional.`

// ruleCommand is the command that is named after the action of its rules. If it is
// given what is not a rule, other does that; nil if there is nothing else it can do.
func ruleCommand(kind fault.ActionKind, summary, details, example string, other action) command {
	c := command{
		name:  string(kind),
		args:  ruleArgs,
		least: 1, most: anyNumber,
		summary:    summary,
		details:    strings.TrimPrefix(details+"\n\n"+ruleDetails, "\n\n"),
		example:    example,
		noNegation: true,
		static:     func(args []string) error { return checkRule(string(kind) + " " + ruleText(args)) },
		run: func(_ context.Context, s *session, args []string) error {
			return s.addRule(string(kind) + " " + ruleText(args))
		},
	}
	if other != nil {
		rule, static := c.run, c.static
		c.least, c.noNegation = 0, false
		c.static = func(args []string) error {
			if len(args) > 0 && strings.Contains(args[0], "/") {
				return static(args)
			}
			return nil
		}
		c.run = func(ctx context.Context, s *session, args []string) error {
			if len(args) > 0 && strings.Contains(args[0], "/") {
				return rule(ctx, s, args)
			}
			return other(ctx, s, args)
		}
	}
	return c
}

// The commands that are rules, in the order in which the reference of rules has them.
var (
	holdCommand = ruleCommand(fault.Hold, "make operations wait until they are released",
		`"release" lets the waiting operations go on. Post-start hooks are operations too.`,
		"hold hook/crd-informer-synced\nhold store/put resource=configmaps name=default/a", nil)
	delayCommand = ruleCommand(fault.Delay, "make operations wait for a while", "",
		"delay http/list resource=pods by=3s", nil)
	freezeCommand = ruleCommand(fault.Freeze, "keep anything newer than a revision from going on",
		`A frozen watch cache stays behind the store until it is released.`,
		"freeze cache/configmaps", nil)
	failCommand = ruleCommand(fault.Fail, "answer operations with an error instead of carrying them out", "",
		"fail store/put resource=configmaps with=unavailable times=2", nil)
	loseReplyCommand = ruleCommand(fault.LoseReply, "carry out operations, but answer with an error as if they had failed", "",
		"lose-reply store/put resource=configmaps with=timeout", nil)
	dropCommand = ruleCommand(fault.Drop, "keep operations from happening, and tell nobody", "",
		"drop store/watch-event resource=configmaps nth=2", nil)
	duplicateCommand = ruleCommand(fault.Duplicate, "carry out operations twice", "",
		"duplicate store/watch-event resource=configmaps", nil)
	cancelCommand = ruleCommand(fault.Cancel, "end operations as if their caller had gone away", "",
		"cancel store/watch-event resource=configmaps times=1", nil)
	loseLeaderCommand = ruleCommand(fault.LoseLeader, "make the store lose its leader before operations", "",
		"lose-leader store/put resource=configmaps times=1", nil)
	partitionCommand = ruleCommand(fault.Partition, "cut a network path",
		`The path is store, between an API server and its store, or client, between a client
and an API server. "lift" restores it.`,
		"partition store server=apiserver-1", nil)
)

// ruleText is the text of a rule after its action: values with spaces are quoted.
func ruleText(args []string) string {
	words := make([]string, len(args))
	for i, arg := range args {
		key, value, found := strings.Cut(arg, "=")
		if found && strings.ContainsAny(value, " \t\"#") {
			arg = key + "=" + strconv.Quote(value)
		}
		words[i] = arg
	}
	return strings.Join(words, " ")
}

// scriptRule is a rule of the script, and where the script gives it.
type scriptRule struct {
	fault.Rule
	where string       // FILE:LINE
	entry *fault.Entry // nil before the server starts
}

// checkRule refuses what is not a rule, as far as that needs no server.
func checkRule(text string) error {
	if _, err := fault.Parse(text, nil); err != nil {
		return fmt.Errorf("%w: %q: %w", errUsage, text, err)
	}
	return nil
}

// addRule adds a rule to the server that runs, or else to the next one.
func (s *session) addRule(text string) error {
	rule, err := fault.Parse(text, nil)
	if err != nil {
		return fmt.Errorf("%w: %q: %w", errUsage, text, err)
	}
	added := &scriptRule{Rule: rule, where: s.here()}
	if s.server != nil {
		entries, err := s.server.Faults().Add(rule)
		if err != nil {
			return fmt.Errorf("%w: %q: %w", errUsage, text, err)
		}
		added.entry = entries[0]
	}
	s.rules = append(s.rules, added)
	return nil
}

// here is the place of the command that runs.
func (s *session) here() string {
	number, _, _ := currentLine(s.ts)
	return fmt.Sprintf("%s:%d", s.script.File, number)
}

// plan is the text of the rules that wait for the next server.
func (s *session) plan() string {
	var plan fault.Plan
	for _, rule := range s.rules {
		plan = append(plan, rule.Rule)
	}
	return plan.String()
}

// enforced finds the rules of the script on the server that has started. It has the
// rules of the script before all others, in their order.
func (s *session) enforced() {
	entries := s.server.Faults().Rules()
	for i, rule := range s.rules {
		rule.entry = entries[i]
	}
}

// endRules forgets the rules of a server that has stopped. Those that never fired are
// an error.
func (s *session) endRules() error {
	rules := s.rules
	s.rules = nil
	var errs []error
	for _, rule := range rules {
		errs = append(errs, rule.unfired())
	}
	return errors.Join(errs...)
}

func (r *scriptRule) unfired() error {
	if r.entry == nil || r.Optional || r.entry.Fired() > 0 {
		return nil
	}
	return fmt.Errorf("%s: the rule %q never fired; remove it, or mark it optional", r.where, r.Rule)
}
