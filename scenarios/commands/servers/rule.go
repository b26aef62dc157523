package servers

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/scenarios/engine"
)

// ruleArgs is the synopsis of a rule after its action.
const ruleArgs = "POINT [KEY=VALUE]... [optional]"

const ruleDetails = `The arguments are those of the rule (see "snowglobe points"). A rule that is added while no
API server is running is in force from the first moment of the next start. It ends when
it is removed, or when the server is shut down. A rule that has not fired by then
fails the script, unless its last word is optional.`

// rule returns the command that adds rules with an action, whose name it has. If the
// arguments are not a rule, as in "crash" alone, it calls other; nil if there are only rules.
func (s *Servers) rule(kind fault.ActionKind, summary, details, example string, other engine.Action) engine.Command {
	text := func(args []string) string { return string(kind) + " " + ruleText(args) }
	check := func(_ *pflag.FlagSet, args []string) error { return checkRule(text(args)) }
	command := engine.Command{
		Name:       string(kind),
		Args:       ruleArgs,
		Summary:    summary,
		Details:    strings.TrimPrefix(details+"\n\n"+ruleDetails, "\n\n"),
		Example:    example,
		NoNegation: true,
		Static:     check,
		Run:        func(_ context.Context, args []string) error { return s.addRule(text(args)) },
	}
	if other == nil {
		return command
	}
	isRule := func(args []string) bool { return len(args) > 0 && strings.Contains(args[0], "/") }
	add := command.Run
	command.NoNegation = false
	command.Static = func(flags *pflag.FlagSet, args []string) error {
		if isRule(args) {
			return check(flags, args)
		}
		return nil
	}
	command.Run = func(ctx context.Context, args []string) error {
		if isRule(args) {
			return add(ctx, args)
		}
		return other(ctx, args)
	}
	return command
}

// ruleTexts are the help texts of the commands that only add rules.
var ruleTexts = map[fault.ActionKind]struct{ summary, details, example string }{
	fault.Hold: {
		"make operations wait until they are released",
		`"release" lets the waiting operations go on. Post-start hooks are operations too.`,
		"hold hook/crd-informer-synced\nhold store/put resource=configmaps name=default/a",
	},
	fault.Delay: {"make operations wait for a while", "", "delay http/list resource=pods by=3s"},
	fault.Freeze: {
		"keep anything newer than a revision from going on",
		`A frozen watch cache stays behind the store until it is released.`,
		"freeze cache/configmaps",
	},
	fault.Fail: {
		"answer operations with an error instead of carrying them out", "",
		"fail store/put resource=configmaps with=unavailable times=2",
	},
	fault.LoseReply: {
		"carry out operations, but answer with an error as if they had failed", "",
		"lose-reply store/put resource=configmaps with=timeout",
	},
	fault.Drop:      {"keep operations from happening, and do not tell their callers", "", "drop store/watch-event resource=configmaps nth=2"},
	fault.Duplicate: {"carry out operations twice", "", "duplicate store/watch-event resource=configmaps"},
	fault.Cancel:    {"end operations as if their caller had gone away", "", "cancel store/watch-event resource=configmaps times=1"},
	fault.LoseLeader: {
		"make the store lose its leader before operations", "",
		"lose-leader store/put resource=configmaps times=1",
	},
	fault.Fire: {
		"fire a lifecycle signal of an API server before its time",
		`It takes away the protection that the signal gives, so it belongs in a mutation: for
example, an unknown path is answered with 503 until MuxAndDiscoveryComplete, and with 404
after it. To wait for a signal, write: await signal SIGNAL`,
		"fire signal/MuxAndDiscoveryComplete",
	},
	fault.Partition: {
		"cut a network path",
		`The path is store, between an API server and its store, or client, between a client
and an API server. "remove-rule" restores it.`,
		"partition store server=apiserver-1",
	},
}

// Rule is the command that only adds rules with an action.
func (s *Servers) Rule(kind fault.ActionKind) engine.Command {
	text := ruleTexts[kind]
	return s.rule(kind, text.summary, text.details, text.example, nil)
}

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
		return fmt.Errorf("%w: %q: %w", engine.ErrUsage, text, err)
	}
	return nil
}

// readMatch reads what operations are to match.
func readMatch(text string) (fault.Match, error) {
	match, err := fault.ParseMatch(text, nil)
	return match, engine.Misuse(err)
}

// checkMatch refuses arguments that are not a match.
func checkMatch(_ *pflag.FlagSet, args []string) error {
	_, err := readMatch(ruleText(args))
	return err
}

// addRule adds a rule to the server that runs, or else to the next one.
func (s *Servers) addRule(text string) error {
	rule, _ := fault.Parse(text, nil)
	added := &scriptRule{Rule: rule, where: s.run.Here()}
	if s.plane != nil {
		entries, err := s.plane.Faults().Add(rule)
		if err != nil {
			return fmt.Errorf("%w: %q: %w", engine.ErrUsage, text, err)
		}
		added.entry = entries[0]
	}
	s.rules = append(s.rules, added)
	return nil
}

// plan is the text of the rules that wait for the next server.
func (s *Servers) plan() string {
	var plan fault.Plan
	for _, rule := range s.rules {
		plan = append(plan, rule.Rule)
	}
	return plan.String()
}

// enforced sets the entries of the script's rules once a server has started. The server has
// the rules of the script before all others, in their order.
func (s *Servers) enforced() {
	entries := s.plane.Faults().Rules()
	for i, rule := range s.rules {
		rule.entry = entries[i]
	}
}

// endRules forgets the rules of a server that has stopped. Those that never fired are
// an error.
func (s *Servers) endRules() error {
	rules := s.rules
	s.rules = nil
	var errs []error
	for _, rule := range rules {
		errs = append(errs, rule.unfired())
	}
	return errors.Join(errs...)
}

// UnfiredError is about a rule that has never fired, which shows nothing.
type UnfiredError struct {
	Where  string // where the rule was given
	Rule   fault.Rule
	Remedy string // what to do with it
}

// Error implements error.
func (e *UnfiredError) Error() string {
	return fmt.Sprintf("%s: the rule %q never fired; %s, or mark it optional", e.Where, e.Rule, e.Remedy)
}

func (r *scriptRule) unfired() error {
	if r.entry == nil || r.Optional || r.entry.Fired() > 0 {
		return nil
	}
	return &UnfiredError{r.where, r.Rule, "remove it"}
}
