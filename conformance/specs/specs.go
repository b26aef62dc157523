// Package specs declares conformance cases as ginkgo specs, each with its labels, so that
// ginkgo's own flags select, order and spread them. It is separate from the cases because
// ginkgo belongs in test binaries: it registers flags and keeps a tree of nodes for the whole
// process. It never decides what conformance means.
//
// A suite opens its targets, and declares their cases:
//
//	var memory = specs.On(target.Memory())
//	var _ = ginkgo.BeforeSuite(memory.Open)
//	var _ = memory.Describe("memory", conformance.Cases())
//
// It is run as any other, for example with: ginkgo -p --randomize-all --label-filter 'S6 && core'
package specs

import (
	"context"

	"github.com/onsi/ginkgo/v2"

	"snowglobe.test/conformance/engine"
	"snowglobe.test/conformance/reports"
	"snowglobe.test/conformance/suite"
	"snowglobe.test/conformance/transcript"
)

// Target is what specs test. Each of ginkgo's parallel processes opens a cluster of its own,
// unless the source finds the same one.
type Target struct {
	source engine.Source[*suite.T]
	target engine.Target[*suite.T] // nil before Open
}

// On returns a target. Its cluster is not there before Open.
func On(source engine.Source[*suite.T]) *Target { return &Target{source: source} }

// Open opens the cluster, and has it closed after the suite. It is for BeforeSuite.
func (t *Target) Open(ctx context.Context) {
	target, err := t.source.Open(ctx)
	if err != nil {
		ginkgo.Fail(err.Error())
	}
	t.target = target
	ginkgo.DeferCleanup(target.Close)
}

// Describe declares a container of specs, one for each case. They know nothing of each other:
// ginkgo may run them in any order, and in parallel processes.
func (t *Target) Describe(text string, cases []suite.Case) bool {
	return ginkgo.Describe(text, func() {
		for _, c := range cases {
			if c.Serial { // parallel processes may test the same cluster
				it(c, t.judge, ginkgo.Serial)
			} else {
				it(c, t.judge)
			}
		}
	})
}

func (t *Target) judge(ctx context.Context, c suite.Case) {
	if t.target == nil {
		ginkgo.Fail("the cluster of " + t.source.String() + " is not open: call the target's Open in BeforeSuite")
	}
	if reason := t.target.Unmet(c.Info()); reason != "" {
		ginkgo.Skip(reason)
	}
	engine.Do(ctx, t.target, c, transcript.NewRecorder(), func(found engine.Finding, callerSkip int) {
		ginkgo.Fail(explain(engine.Result{Case: c.Info(), Finding: found}), callerSkip+1)
	})
}

// exchanges is how many of the last requests a failure tells.
const exchanges = 5

func explain(result engine.Result) string { return reports.Explain(result, exchanges) }

// it declares the spec of a case.
func it(c suite.Case, run func(ctx context.Context, c suite.Case), decorators ...any) {
	ginkgo.It(name(c), ginkgo.Label(c.Labels()...), decorators, func(ctx context.Context) { run(ctx, c) })
}

func name(c suite.Case) string { return c.ID + ": " + c.Promise }
