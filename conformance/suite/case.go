// Package suite owns what the cases about API servers are given: a T with clients of one
// cluster, objects to write, streams to read and servers to launch. It holds no case, and never
// decides which ones run.
package suite

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/transport"

	"snowglobe.test/conformance/engine"
	"snowglobe.test/conformance/transcript"
	"snowglobe.test/envtest/process"
)

// Case is a promise of an API server and its test. Its Area is the name of a package below
// conformance/cases.
type Case = engine.Case[*T]

// Needs is what a case requires beyond an API server of the linked release and a user with all
// permissions.
type Needs = engine.Needs

// Launch are the most common needs: a case launches control planes of its own.
var Launch = Needs{Launch: true}

// Launching are cases that all launch control planes of their own.
func Launching(cases []Case) []Case {
	for i := range cases {
		cases[i].Needs.Launch = true
	}
	return cases
}

// The levels.
const (
	// Core promises are those of every conformant API server.
	Core engine.Level = "core"
	// Versioned promises, as most are, are those of the release that this module links: older and
	// newer ones need not keep them.
	Versioned engine.Level = "versioned"
)

// Unmet says what a case needs and the cluster lacks; empty if the case can run.
func (c *Cluster) Unmet(tested engine.Info) string {
	needs, since := tested.Needs, tested.Since
	switch {
	case needs.Release && c.Release == "":
		return "needs " + engine.NeedsRelease + ": it is not known which one runs at " + c.Name
	case needs.Launch && c.Launcher == nil:
		return "needs " + engine.NeedsLaunch + ": none can be started beside " + c.Name
	case since != "" && c.Minor == "":
		return "needs release " + since + " or newer: it is not known which one runs at " + c.Name
	case since != "" && older(c.Minor, since):
		return "needs release " + since + " or newer: " + c.Minor + " runs at " + c.Name
	}
	for _, gate := range tested.Gates {
		if on, known := c.Gates[gate]; !known {
			return "needs feature gate " + gate + ": it is not known whether it is on at " + c.Name
		} else if !on {
			return "needs feature gate " + gate + ", which is off at " + c.Name
		}
	}
	return ""
}

// older reports whether a minor release is older than another. It is false if one of them can't
// be parsed.
func older(minor, than string) bool {
	have, err := version.ParseGeneric(minor)
	if err != nil {
		return false
	}
	want, err := version.ParseGeneric(than)
	return err == nil && have.LessThan(want)
}

// caseTimeout bounds one case, on the target's clock: what takes that long hangs, on a busy
// machine too.
const caseTimeout = 5 * time.Minute

// Do runs a case on the cluster, and cleans up after it: see engine.Target. Switches of client-go in
// the environment do not count.
func (c *Cluster) Do(ctx context.Context, tested Case, recorder *transcript.Recorder, fail func(string, ...int)) {
	recorded := *c
	recorded.Wrap = transport.Wrappers(c.Wrap, recorder.Wrap)
	process.Steady(func() { recorded.do(ctx, tested, fail) })
}

func (c *Cluster) do(ctx context.Context, tested Case, fail func(string, ...int)) {
	t, err := newT(c.serving(tested.ID), c.page(tested.ID), tested.ID, fail)
	if err != nil {
		fail(err.Error())
		return
	}
	tested.Within(ctx, caseTimeout, t, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)
		defer cancel()
		return t.cleanUp(ctx)
	}, fail)
}
