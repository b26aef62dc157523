package conformance

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"
)

// Area groups cases by what they are about.
type Area string

// The areas, in the order in which they are run.
const (
	AreaStartup    Area = "startup"
	AreaDelegation Area = "delegation"
	AreaDiscovery  Area = "discovery"
	AreaCRDs       Area = "CRD lifecycle"
	AreaWatch      Area = "watch"
	AreaList       Area = "list"
	AreaWrite      Area = "write"
)

// Case is one promise and the test of it.
type Case struct {
	// ID is the system and a name, unique: "S11/unknown-path-is-404".
	ID string `json:"id"`
	// System is the part of the server whose promise it is, like "S11": see
	// docs/reference/conformance.md.
	System string `json:"system"`
	// Area groups the case with others.
	Area Area `json:"area"`
	// Promise is what holds, in one sentence.
	Promise string `json:"promise"`
	// Needs is what the target must offer.
	Needs Needs `json:"needs,omitzero"`
	// Test fails an assertion of the target when the promise is broken. It
	// returns when the context ends, and makes assertions on its own goroutine.
	Test func(ctx context.Context, t *Target) `json:"-"`
}

// Needs says what a case asks of its target beyond an API server of the linked
// release and a user who may do everything there.
type Needs struct {
	// Release: it is known which release the target must report.
	Release bool `json:"release,omitempty"`
	// Launch: another control plane, on a store of its own, can be started beside
	// the target, with its post-start hooks held.
	Launch bool `json:"launch,omitempty"`
}

// String names the needs for a person; it is empty when there are none.
func (n Needs) String() string {
	switch {
	case n.Release && n.Launch:
		return needRelease + "; " + needLaunch
	case n.Release:
		return needRelease
	case n.Launch:
		return needLaunch
	}
	return ""
}

const (
	needRelease = "a known release"
	needLaunch  = "control planes of its own, with hooks held"
)

// Unmet says what the case needs and the cluster does not offer, and is empty
// when the case can be run.
func (c Case) Unmet(cluster *Cluster) string {
	switch {
	case c.Needs.Release && cluster.Release == "":
		return "needs " + needRelease + ": nobody said which one runs at " + cluster.Name
	case c.Needs.Launch && cluster.Launch == nil:
		return "needs " + needLaunch + ": none can be started beside " + cluster.Name
	}
	return ""
}

// Cases returns all cases, area by area.
func Cases() []Case {
	return slices.Concat(startupCases(), delegationCases(), discoveryCases(), crdCases(), watchCases(), listCases(), writeCases())
}

// Select returns the cases whose ID, area or promise matches a regular
// expression; an empty one matches all. That none matches is an error.
func Select(cases []Case, focus string) ([]Case, error) {
	matches, err := regexp.Compile(focus)
	if err != nil {
		return nil, fmt.Errorf("select cases: focus is not a regular expression: %w", err)
	}
	var chosen []Case
	for _, c := range cases {
		if matches.MatchString(c.ID) || matches.MatchString(string(c.Area)) || matches.MatchString(c.Promise) {
			chosen = append(chosen, c)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("select cases: none of the %d cases matches focus %q; list them to see their names", len(cases), focus)
	}
	return chosen, nil
}

// caseLimit bounds one case, in the clock the target lives in.
const caseLimit = time.Minute

// Do runs the case on a cluster that meets its needs, and cleans up after it.
// fail is told of the first assertion that fails and must not return: ginkgo.Fail
// is one, as is a function that panics.
func (c Case) Do(ctx context.Context, cluster *Cluster, fail func(message string, callerSkip ...int)) {
	ctx, cancel := context.WithTimeoutCause(ctx, caseLimit, fmt.Errorf("the case did not end within %s", caseLimit))
	defer cancel()
	t, err := newTarget(cluster, c.ID, fail)
	if err != nil {
		fail(err.Error())
		return
	}
	held := false
	defer func() {
		// A case that failed is reported for that, not for what it left behind.
		if err := t.cleanUp(ctx); err != nil && held {
			fail("clean up: " + err.Error())
		}
	}()
	c.Test(ctx, t)
	held = true
}
