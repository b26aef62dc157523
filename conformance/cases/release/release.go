// Package release has the cases that compare what a server has of its own with what its release
// defines: resources, OpenAPI documents, roles, flow schemas and flags. What they expect is kept in
// files, which a test makes from upstream's source.
package release

import (
	"context"
	_ "embed"
	"slices"
	"strings"
	"time"

	"github.com/onsi/gomega"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
)

// Cases are the cases of this area.
var Cases = slices.Concat(discoveryCases, openAPICases, roleCases, flowCases, flagCases)

// seldom is how often a case asks for all that there is, until it is complete.
const seldom = 5 * time.Second

// everything launches a control plane that serves each API of the release, for all cases that
// ask for it.
func everything(ctx context.Context, beside *suite.T) *suite.T {
	_, t := beside.Shared(ctx, "everything", envtest.WithFlags("--runtime-config=api/all=true"))
	return t
}

// plain launches a control plane without flags, for all cases that ask for it.
func plain(ctx context.Context, beside *suite.T) *suite.T {
	_, t := beside.Shared(ctx, "plain")
	return t
}

// lines are those of a kept file.
func lines(kept string) []string {
	return strings.Split(strings.TrimSpace(kept), "\n")
}

// differences are the lines that only one of two has: with a plus what is there beside what is
// kept, and with a minus what is not there.
func differences(kept, found []string) []string {
	var all []string
	for _, line := range found {
		if !slices.Contains(kept, line) {
			all = append(all, "+ "+line)
		}
	}
	for _, line := range kept {
		if !slices.Contains(found, line) {
			all = append(all, "- "+line)
		}
	}
	slices.Sort(all)
	return all
}

// expectSame asserts that what is found is what is kept, in any order.
func expectSame(t *suite.T, kept, found []string, what string) {
	t.Expect(differences(kept, found)).To(gomega.BeEmpty(), what)
}
