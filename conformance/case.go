package conformance

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Area groups cases by topic.
type Area string

// The areas, in the order in which they run.
const (
	AreaStartup    Area = "startup"
	AreaDelegation Area = "delegation"
	AreaDiscovery  Area = "discovery"
	AreaCRDs       Area = "CRD lifecycle"
	AreaWatch      Area = "watch"
	AreaList       Area = "list"
	AreaWrite      Area = "write"
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
	// Launch: a control plane can be started beside the target, with its hooks held.
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
	needLaunch  = "control planes of its own, with hooks held"
)

// Unmet says what the case needs and the cluster lacks; empty if the case can run.
func (c Case) Unmet(cluster *Cluster) string {
	switch {
	case c.Needs.Release && cluster.Release == "":
		return "needs " + needRelease + ": it is not known which one runs at " + cluster.Name
	case c.Needs.Launch && cluster.Launch == nil:
		return "needs " + needLaunch + ": none can be started beside " + cluster.Name
	}
	return ""
}

// Cases returns all cases, area by area.
func Cases() []Case {
	var all []Case
	for _, part := range []struct {
		area  Area
		cases []Case
	}{
		{AreaStartup, startupCases}, {AreaDelegation, delegationCases}, {AreaDiscovery, discoveryCases}, {AreaDiscovery, openAPICases},
		{AreaCRDs, crdCases}, {AreaCRDs, schemaCases}, {AreaWatch, watchCases}, {AreaList, listCases}, {AreaWrite, writeCases},
	} {
		for _, c := range part.cases {
			c.Area = part.area
			c.System, _, _ = strings.Cut(c.ID, "/")
			all = append(all, c)
		}
	}
	return all
}

// Select returns the cases whose ID, area or promise matches a regular expression; an
// empty one matches all. It is an error if none matches.
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

// caseTimeout bounds one case, on the target's clock.
const caseTimeout = time.Minute

// Do runs the case on a cluster that meets its needs, and cleans up after it. The
// first failed assertion calls fail, which must not return: use ginkgo.Fail, or panic.
func (c Case) Do(ctx context.Context, cluster *Cluster, fail func(message string, callerSkip ...int)) {
	ctx, cancel := context.WithTimeoutCause(ctx, caseTimeout, fmt.Errorf("the case did not end within %s", caseTimeout))
	defer cancel()
	t, err := newTarget(cluster, c.ID, fail)
	if err != nil {
		fail(err.Error())
		return
	}
	held := false
	defer func() {
		// If the case failed, report that and not what it left behind.
		if err := t.cleanUp(ctx); err != nil && held {
			fail("clean up: " + err.Error())
		}
	}()
	c.Test(ctx, t)
	held = true
}
