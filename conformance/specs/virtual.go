package specs

import (
	"context"
	"regexp"
	"strings"

	"github.com/onsi/ginkgo/v2"

	"snowglobe.test/conformance/engine"
	"snowglobe.test/conformance/suite"
)

// DescribeVirtual declares a container of specs that run in virtual time. A spec can't begin
// inside a bubble, so the cases that ginkgo selects run in one before the first spec, and each
// spec reports its result. One of ginkgo's parallel processes runs them all, in their order.
func DescribeVirtual(text string, source engine.Source[*suite.T], cases []suite.Case) bool {
	return ginkgo.Describe(text, ginkgo.Ordered, ginkgo.ContinueOnFailure, func() {
		ended := map[string]engine.Result{}
		simulate := func(ctx context.Context, cases []suite.Case) {
			report, err := engine.Simulate(ctx, source, cases, nil)
			if err != nil {
				ginkgo.Fail(err.Error())
			}
			for _, result := range report.Results {
				ended[result.Case.ID] = result
			}
		}
		ginkgo.BeforeAll(func(ctx context.Context) {
			if chosen := selected(text, cases); len(chosen) > 0 {
				simulate(ctx, chosen)
			}
		})
		for _, c := range cases {
			it(c, func(ctx context.Context, c suite.Case) {
				if _, ran := ended[c.ID]; !ran { // something in the program selects it
					simulate(ctx, []suite.Case{c})
				}
				tell(ended[c.ID])
			})
		}
	})
}

// tell has the spec end as the case did.
func tell(result engine.Result) {
	ginkgo.AddReportEntry("virtual time", result.Took.String(), ginkgo.ReportEntryVisibilityFailureOrVerbose)
	switch result.State {
	case engine.Failed:
		ginkgo.Fail(explain(result))
	case engine.NotApplicable, engine.NotRun:
		ginkgo.Skip(result.Message)
	}
}

// selected are the cases that ginkgo's flags select in a container.
func selected(container string, cases []suite.Case) (chosen []suite.Case) {
	config, _ := ginkgo.GinkgoConfiguration()
	labelled, err := engine.ParseLabels(config.LabelFilter)
	if err != nil {
		return nil
	}
	for _, c := range cases {
		text := container + " " + name(c)
		if labelled(c.Labels()) && (len(config.FocusStrings) == 0 || matches(config.FocusStrings, text)) &&
			!matches(config.SkipStrings, text) {
			chosen = append(chosen, c)
		}
	}
	return chosen
}

// matches reports whether one of the expressions, which ginkgo has checked, matches a text.
func matches(expressions []string, text string) bool {
	return len(expressions) > 0 && regexp.MustCompile(strings.Join(expressions, "|")).MatchString(text)
}
