// Package engine owns how cases are chosen, run and judged, whatever they are about. A case is a
// promise and its test; the engine opens a target, runs cases on it in real or in virtual time,
// and returns what came of each as values. It holds no case, knows no server, and writes no report.
//
// There are two kinds of cases, which differ in what a test is given: those of package suite test
// an API server, those of package store a store that speaks etcd's API.
package engine

import (
	"context"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

// Level says who has to keep a promise.
type Level string

// Case is one promise and its test, which is given a T.
type Case[T any] struct {
	// ID is unique: a part of what is tested, and a name, like "S11/unknown-path-is-404".
	ID string `json:"id"`
	// System is the part of the server, like "S11": see docs/reference/conformance.md. The list of
	// cases sets it, and Area and Sources.
	System string `json:"system"`
	// Area groups cases by topic, like "watch".
	Area string `json:"area"`
	// Promise is what is promised, in one sentence.
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
	// Serial cases see what other cases do on the same target, or disturb them: they run alone.
	Serial bool `json:"serial,omitempty"`
	// Apart names a group of cases that disturb each other, but no others: they run one after another.
	Apart string `json:"-"`
	// Waits marks cases that spend seconds waiting for what a server does periodically. They begin
	// before the others, so that the run does not wait for them at its end.
	Waits bool `json:"-"`
	// Needs is what the target must offer.
	Needs Needs `json:"needs,omitzero"`
	// Sources has the files of the case's package, so that a report can quote the step that failed.
	Sources fs.FS `json:"-"`
	// Test fails an assertion of the T if the promise is broken. It returns when the context ends,
	// and asserts only on the goroutine it is called on.
	Test func(ctx context.Context, t T) `json:"-"`
}

// Info describes a case of either kind: it is the case without its test.
type Info = Case[struct{}]

// Info returns the case without its test.
func (c Case[T]) Info() Info {
	return Info{
		ID: c.ID, System: c.System, Area: c.Area, Promise: c.Promise, Source: c.Source, Level: c.Level,
		Failure: c.Failure, Since: c.Since, Gates: c.Gates, Serial: c.Serial, Apart: c.Apart, Waits: c.Waits,
		Needs: c.Needs,
	}
}

// Infos are cases without their tests.
func Infos[T any](cases []Case[T]) []Info {
	infos := make([]Info, len(cases))
	for i, c := range cases {
		infos[i] = c.Info()
	}
	return infos
}

// Needs says what a case requires beyond an API server and a user with all permissions, or
// beyond a store.
type Needs struct {
	// Release: the release that the target must report is known.
	Release bool `json:"release,omitempty"`
	// Launch: control planes can be started beside the target, with options of their own.
	Launch bool `json:"launch,omitempty"`
	// Compaction: the history may be compacted, which all clients of a store share.
	Compaction bool `json:"compaction,omitempty"`
}

// The needs in words.
const (
	NeedsRelease    = "a known release"
	NeedsLaunch     = "control planes of its own"
	NeedsCompaction = "a history that may be compacted"
)

// Needed is all that a target must offer for the case to apply to it, for people; empty if it
// need offer nothing.
func (c Case[T]) Needed() string {
	var all []string
	for _, need := range []struct {
		needed bool
		text   string
	}{
		{c.Needs.Release, NeedsRelease}, {c.Needs.Launch, NeedsLaunch}, {c.Needs.Compaction, NeedsCompaction},
		{c.Since != "", "release " + c.Since + " or newer"},
	} {
		if need.needed {
			all = append(all, need.text)
		}
	}
	for _, gate := range c.Gates {
		all = append(all, "feature gate "+gate)
	}
	return strings.Join(all, "; ")
}

// The reaches of cases: on which targets they can run.
const (
	// Portable cases run on any target, such as a cluster of a kubeconfig.
	Portable = "portable"
	// Linked cases launch control planes of their own, with flags, faults or time to judge by. So they
	// run only in the process that links the API server.
	Linked = "linked"
)

// Reach is Portable or Linked.
func (c Case[T]) Reach() string {
	if c.Needs.Launch {
		return Linked
	}
	return Portable
}

// Reaches counts cases in words, like "245 portable, 167 linked".
func Reaches[T any](cases []Case[T]) string {
	linked := 0
	for _, c := range cases {
		if c.Reach() == Linked {
			linked++
		}
	}
	return fmt.Sprintf("%d %s, %d %s", len(cases)-linked, Portable, linked, Linked)
}

// FailureLabel is the label of cases about what happens when something fails or is refused.
const FailureLabel = "failure"

// KEPNumber is a KEP in a case's source.
var KEPNumber = regexp.MustCompile(`KEP-(\d+)`)

// Labels are what a case is selected by: its system, area, level and reach, "failure" if it is about
// one, and the KEPs that it tests, such as "KEP-555".
func (c Case[T]) Labels() []string {
	labels := []string{c.System, c.Area, string(c.Level), c.Reach()}
	if c.Failure {
		labels = append(labels, FailureLabel)
	}
	return append(labels, KEPNumber.FindAllString(c.Source, -1)...)
}
