// Package suite owns what a conformance case is and what it is given: a Target with clients
// of one cluster, objects to write, streams to read and servers to launch. It holds no case,
// and never decides which ones run.
package suite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"

	"snowglobe.test/envtest/process"
)

// Area groups cases by topic; it is the name of a package below conformance/cases.
type Area string

// Level says who has to keep a promise.
type Level string

// The levels.
const (
	// Core promises are those of every conformant API server.
	Core Level = "core"
	// Linked promises are those of the release that this module links.
	Linked Level = "linked"
)

// Case is one promise and its test.
type Case struct {
	// ID is the system and a name, unique: "S11/unknown-path-is-404".
	ID string `json:"id"`
	// System is the part of the server, like "S11": see docs/reference/conformance.md.
	System string `json:"system"`
	// Area groups the case with others.
	Area Area `json:"area"`
	// Promise is what the server promises, in one sentence.
	Promise string `json:"promise"`
	// Source is where that is said: the number of a KEP, a page of upstream's documents,
	// or a file of upstream's source; several are separated by semicolons.
	Source string `json:"source"`
	// Level says who has to keep the promise.
	Level Level `json:"level"`
	// Failure marks a promise about what happens when something fails or is refused.
	Failure bool `json:"failure,omitempty"`
	// Since is the first minor release that keeps the promise, like "1.34"; empty if all do.
	Since string `json:"since,omitempty"`
	// Gates are the feature gates that must be on.
	Gates []string `json:"gates,omitempty"`
	// Serial cases see what other cases do on the same cluster, or disturb them: they run
	// alone.
	Serial bool `json:"serial,omitempty"`
	// Apart is the same word for cases that disturb each other, and no others: they run one after
	// another.
	Apart string `json:"-"`
	// Waits is for cases that take seconds, in which they wait for what a server does now and then:
	// they begin before the others.
	Waits bool `json:"-"`
	// Needs is what the target must offer.
	Needs Needs `json:"needs,omitzero"`
	// Test fails an assertion on the target if the promise is broken. It returns when
	// the context ends, and asserts only on the goroutine it is called on.
	Test func(ctx context.Context, t *Target) `json:"-"`
}

// Needs says what a case requires beyond an API server of the linked release and a
// user with all permissions.
type Needs struct {
	// Release: the release that the target must report is known.
	Release bool `json:"release,omitempty"`
	// Launch: control planes can be started beside the target, with options of their own.
	Launch bool `json:"launch,omitempty"`
}

// String describes the needs for people; it is empty if there are none.
func (n Needs) String() string {
	var needs []string
	if n.Release {
		needs = append(needs, needRelease)
	}
	if n.Launch {
		needs = append(needs, needLaunch)
	}
	return strings.Join(needs, "; ")
}

const (
	needRelease = "a known release"
	needLaunch  = "control planes of its own"
)

// Unmet says what the case needs and the cluster lacks; empty if the case can run.
func (c Case) Unmet(cluster *Cluster) string {
	switch {
	case c.Needs.Release && cluster.Release == "":
		return "needs " + needRelease + ": it is not known which one runs at " + cluster.Name
	case c.Needs.Launch && cluster.Launcher == nil:
		return "needs " + needLaunch + ": none can be started beside " + cluster.Name
	case c.Since != "" && cluster.Minor == "":
		return "needs release " + c.Since + " or newer: it is not known which one runs at " + cluster.Name
	case c.Since != "" && older(cluster.Minor, c.Since):
		return "needs release " + c.Since + " or newer: " + cluster.Minor + " runs at " + cluster.Name
	}
	for _, gate := range c.Gates {
		if on, known := cluster.Gates[gate]; !known {
			return "needs feature gate " + gate + ": it is not known whether it is on at " + cluster.Name
		} else if !on {
			return "needs feature gate " + gate + ", which is off at " + cluster.Name
		}
	}
	return ""
}

// older compares minor releases. What is no release is older than none.
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

// Do runs the case on a cluster that meets its needs, and cleans up after it. The
// first failed assertion calls fail, which must not return: use ginkgo.Fail, or panic. Switches of
// client-go in the environment do not count.
func (c Case) Do(ctx context.Context, cluster *Cluster, fail func(message string, callerSkip ...int)) {
	process.Steady(func() { c.do(ctx, cluster, fail) })
}

func (c Case) do(ctx context.Context, cluster *Cluster, fail func(message string, callerSkip ...int)) {
	cluster, remove := cluster.noting(c.ID)
	ctx, cancel := context.WithTimeoutCause(ctx, caseTimeout, fmt.Errorf("the case did not end within %s", caseTimeout))
	defer cancel()
	t, err := newTarget(cluster.serving(c.ID), c.ID, fail)
	if err != nil {
		fail(err.Error())
		return
	}
	held := false
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()
		// If the case failed, report that and not what it left behind.
		if err := errors.Join(t.cleanUp(ctx), remove(ctx)); err != nil && held {
			fail("clean up: " + err.Error())
		}
	}()
	c.Test(ctx, t)
	held = true
}
