// Package specs declares conformance cases as ginkgo specs. It is separate from the cases
// because ginkgo belongs in test binaries: it registers flags and keeps a tree of nodes
// for the whole process. It never decides what conformance means.
package specs

import (
	"context"

	"github.com/onsi/ginkgo/v2"

	"snowglobe.test/conformance"
)

// Describe declares a container of cases on one cluster, opened before the first and
// closed after the last. One that fails stops no other. Area and system are labels.
func Describe(text string, source conformance.Source, cases []conformance.Case) bool {
	return ginkgo.Describe(text, ginkgo.Ordered, ginkgo.ContinueOnFailure, func() {
		var cluster *conformance.Cluster
		ginkgo.BeforeAll(func(ctx context.Context) {
			var err error
			if cluster, err = source.Open(ctx); err != nil {
				ginkgo.Fail(err.Error())
			}
			ginkgo.DeferCleanup(func(ctx context.Context) error {
				if cluster.Close == nil {
					return nil
				}
				return cluster.Close(ctx)
			})
		})
		each(cases, func(ctx context.Context, c conformance.Case) {
			if reason := c.Unmet(cluster); reason != "" {
				ginkgo.Skip(reason)
			}
			c.Do(ctx, cluster, ginkgo.Fail)
		})
	})
}

// DescribeVirtual is Describe in virtual time. A spec can't begin inside a bubble,
// so all cases run in one before the first spec, and each spec reports its result.
func DescribeVirtual(text string, source conformance.Source, cases []conformance.Case) bool {
	return ginkgo.Describe(text, ginkgo.Ordered, ginkgo.ContinueOnFailure, func() {
		ended := map[string]conformance.Result{}
		ginkgo.BeforeAll(func(ctx context.Context) {
			report, err := conformance.Simulate(ctx, source, cases, nil)
			if err != nil {
				ginkgo.Fail(err.Error())
			}
			for _, result := range report.Results {
				ended[result.Case.ID] = result
			}
		})
		each(cases, func(_ context.Context, c conformance.Case) {
			result := ended[c.ID]
			ginkgo.AddReportEntry("virtual time", result.Took.String(), ginkgo.ReportEntryVisibilityFailureOrVerbose)
			switch result.State {
			case conformance.Failed:
				ginkgo.Fail(result.Location + ": " + result.Message)
			case conformance.Skipped:
				ginkgo.Skip(result.Message)
			}
		})
	})
}

// each declares one spec for each case.
func each(cases []conformance.Case, run func(ctx context.Context, c conformance.Case)) {
	for _, c := range cases {
		ginkgo.It(c.ID+": "+c.Promise, ginkgo.Label(string(c.Area), c.System), func(ctx context.Context) { run(ctx, c) })
	}
}
