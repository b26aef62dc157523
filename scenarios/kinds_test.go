package scenarios_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/process"
	"snowglobe.test/envtest/virtualtime"
	"snowglobe.test/scenarios/checkers"
	"snowglobe.test/scenarios/commands/checks"
	"snowglobe.test/scenarios/commands/servers"
	"snowglobe.test/scenarios/engine"
	"snowglobe.test/scenarios/explore"
	"snowglobe.test/scenarios/explore/worker"
)

// TestWordsDecideNothing gives errors of each kind the words of all others.
func TestWordsDecideNothing(t *testing.T) {
	plain := errors.New(`the API server crashed: post-start hook "a" failed: virtual time stands still: the rule "b" never fired; linearizability: broken`)
	for name, c := range map[string]struct {
		err  error
		want explore.Kind
	}{
		"words":           {plain, explore.ScriptFailed},
		"a crash":         {&process.CrashError{Err: plain}, explore.Crashed},
		"a crash, short":  {&process.CrashError{Err: errors.New("oh")}, explore.Crashed},
		"a standstill":    {fmt.Errorf("%w: %w", virtualtime.ErrStandstill, plain), explore.StoodStill},
		"stuck":           {&virtualtime.StuckError{}, explore.StoodStill},
		"a stuck server":  {&process.CrashError{Err: virtualtime.ErrStandstill}, explore.StoodStill},
		"an unfired rule": {&servers.UnfiredError{Where: plain.Error(), Rule: fault.Rule{}}, explore.ScriptFailed},
		"a verdict":       {&checks.BrokenError{Report: checkers.Report{}}, explore.Broken},
	} {
		wrapped := errors.Join(&engine.Failure{Script: "x.txtar", Line: 3, Command: "await",
			Err: fmt.Errorf("not in time: %w", c.err)}, errors.New("and more"))
		failure := worker.FailureOf(wrapped)
		assert.True(t, failure != nil && failure.Kind == c.want, "%s: %+v, want %s", name, failure, c.want)
	}
	assert.Nil(t, worker.FailureOf(nil), "a script that has passed")
}

// TestWordsDecideNoCause gives failures of one cause other words, and of other causes the
// same.
func TestWordsDecideNoCause(t *testing.T) {
	causes := map[string]func(words string) error{
		"a command": func(words string) error {
			return &engine.Failure{Script: "x.txtar", Line: len(words), Text: "list pods", Err: errors.New(words)}
		},
		"another command": func(words string) error {
			return &engine.Failure{Script: "x.txtar", Text: "list nodes", Err: errors.New(words)}
		},
		"a command that is late": func(words string) error {
			return &engine.Failure{Text: "list pods", Err: fmt.Errorf("%s: %w", words, context.DeadlineExceeded)}
		},
		"a command that is refused": func(words string) error {
			return &engine.Failure{Text: "list pods",
				Err: fmt.Errorf("%s: %w", words, apierrors.NewUnauthorized(words))}
		},
		"a hook": func(words string) error {
			return &process.CrashError{Err: fmt.Errorf("%s: %w", words,
				&process.SiteError{Site: "hook/a", Err: errors.New(words)})}
		},
		"a panic": func(words string) error {
			return &process.CrashError{Err: &process.SiteError{Site: "example.com/a.F", Err: errors.New(words)}}
		},
		"a check": func(words string) error {
			finding := checkers.Finding{Check: "watch", Verdict: checkers.Broken, What: words}
			return &checks.BrokenError{Report: checkers.Report{Results: []checkers.Result{{Findings: []checkers.Finding{finding}}}}}
		},
		"an unfired rule": func(words string) error {
			return &servers.UnfiredError{Where: words, Rule: fault.Rule{Action: fault.Action{Kind: fault.Drop}}}
		},
	}
	for name, cause := range causes {
		failure := worker.FailureOf(cause("it took 3 tries"))
		for other, cause := range causes {
			assert.Equal(t, name == other, failure.Same(worker.FailureOf(cause("something else"))),
				"%s and %s, in other words", name, other)
			assert.Equal(t, name == other, failure.Same(worker.FailureOf(cause("it took 3 tries"))),
				"%s and %s, in the same words", name, other)
		}
	}
}
