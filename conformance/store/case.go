// Package store owns the promises that Kubernetes needs of a store, each with a test, and
// judges anything that speaks etcd's API by them. It knows the store by its client alone,
// writes only below a prefix of its own, and never starts or stops a store.
package store

import (
	"context"
	"fmt"
	"regexp"
	"strings"
)

// Level says who relies on a promise.
type Level string

// The levels.
const (
	// Kubernetes promises are those that an API server of the linked release relies on.
	Kubernetes Level = "kubernetes"
	// Etcd promises are those that etcd makes besides, on which etcdctl and others rely.
	Etcd Level = "etcd"
)

// Case is one promise and its test.
type Case struct {
	// ID is the area and a name, unique: "watch/replays-history".
	ID string
	// Area is what the case is about, like "watch".
	Area string
	// Promise is what the store promises, in one sentence.
	Promise string
	// Source is where that is said, or which code of Kubernetes relies on it.
	Source string
	// Level says who relies on it.
	Level Level
	// Failure marks a promise about what happens when something is refused or ends.
	Failure bool
	// Compacts marks a test that compacts the history, which all clients of the store share.
	Compacts bool
	// Test fails an assertion on the target if the promise is broken. It returns when the
	// context ends, and asserts only on the goroutine it is called on.
	Test func(ctx context.Context, t *Target)
}

// areas are the parts of the suite, in the order in which they run.
var areas = []struct {
	level Level
	cases []Case
}{
	{Kubernetes, kvCases},
	{Kubernetes, pagingCases},
	{Kubernetes, txnCases},
	{Kubernetes, leaseCases},
	{Kubernetes, watchCases},
	{Kubernetes, streamCases},
	{Kubernetes, progressCases},
	{Kubernetes, compactionCases},
	{Kubernetes, consistencyCases},
	{Kubernetes, maintenanceCases},
	{Etcd, etcdKVCases},
	{Etcd, etcdTxnCases},
	{Etcd, etcdCompactionCases},
	{Etcd, etcdWatchCases},
	{Etcd, etcdLeaseCases},
}

// Cases returns all cases, area by area.
func Cases() []Case {
	var all []Case
	for _, area := range areas {
		for _, c := range area.cases {
			c.Level = area.level
			c.Area, _, _ = strings.Cut(c.ID, "/")
			all = append(all, c)
		}
	}
	return all
}

// Select returns the cases of a level whose ID or promise matches a regular expression. The
// level Etcd has those of Kubernetes too; an empty expression matches all. It is an error if
// there are none.
func Select(cases []Case, level Level, focus string) ([]Case, error) {
	if level != Kubernetes && level != Etcd {
		return nil, fmt.Errorf("select cases: level %q is not known; use %q, or %q for those and more", level, Kubernetes, Etcd)
	}
	matches, err := regexp.Compile(focus)
	if err != nil {
		return nil, fmt.Errorf("select cases: focus is not a regular expression: %w", err)
	}
	var chosen []Case
	for _, c := range cases {
		if (level == Etcd || c.Level == level) && (matches.MatchString(c.ID) || matches.MatchString(c.Promise)) {
			chosen = append(chosen, c)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("select cases: none of level %s matches focus %q; list them to see their names", level, focus)
	}
	return chosen, nil
}
