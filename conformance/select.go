package conformance

import (
	"fmt"
	"regexp"
	"strings"

	"snowglobe.test/conformance/cases/admission"
	"snowglobe.test/conformance/cases/aggregation"
	"snowglobe.test/conformance/cases/apply"
	"snowglobe.test/conformance/cases/audit"
	"snowglobe.test/conformance/cases/authentication"
	"snowglobe.test/conformance/cases/authorization"
	"snowglobe.test/conformance/cases/configuration"
	"snowglobe.test/conformance/cases/crds"
	"snowglobe.test/conformance/cases/delegation"
	"snowglobe.test/conformance/cases/discovery"
	"snowglobe.test/conformance/cases/filters"
	"snowglobe.test/conformance/cases/informers"
	"snowglobe.test/conformance/cases/list"
	"snowglobe.test/conformance/cases/release"
	"snowglobe.test/conformance/cases/replicas"
	"snowglobe.test/conformance/cases/shutdown"
	"snowglobe.test/conformance/cases/startup"
	"snowglobe.test/conformance/cases/storage"
	"snowglobe.test/conformance/cases/tunnel"
	"snowglobe.test/conformance/cases/watch"
	"snowglobe.test/conformance/cases/write"
	"snowglobe.test/conformance/suite"
)

// areas are the parts of the suite, in the order in which they run.
var areas = []struct {
	name  suite.Area
	cases []suite.Case
}{
	{"startup", startup.Cases},
	{"shutdown", shutdown.Cases},
	{"delegation", delegation.Cases},
	{"discovery", discovery.Cases},
	{"release", release.Cases},
	{"configuration", configuration.Cases},
	{"filters", filters.Cases},
	{"authentication", authentication.Cases},
	{"authorization", authorization.Cases},
	{"admission", admission.Cases},
	{"audit", audit.Cases},
	{"crds", crds.Cases},
	{"watch", watch.Cases},
	{"list", list.Cases},
	{"write", write.Cases},
	{"apply", apply.Cases},
	{"storage", storage.Cases},
	{"aggregation", aggregation.Cases},
	{"tunnel", tunnel.Cases},
	{"informers", informers.Cases},
	{"replicas", replicas.Cases},
}

// Cases returns all cases, area by area.
func Cases() []suite.Case {
	var all []suite.Case
	for _, area := range areas {
		for _, c := range area.cases {
			c.Area = area.name
			c.System, _, _ = strings.Cut(c.ID, "/")
			all = append(all, c)
		}
	}
	return all
}

// Selection says which cases to run. Its zero value is all.
type Selection struct {
	// Focus and Skip are regular expressions for ID, area or promise: what a case must match,
	// and what it must not. Empty ones match all and none.
	Focus, Skip string
	// Labels is a query of ginkgo's for the labels of a case, such as "S6 && core".
	Labels string
}

// String describes the selection for people.
func (s Selection) String() string {
	var parts []string
	for _, part := range [][2]string{{"focus", s.Focus}, {"skip", s.Skip}, {"label filter", s.Labels}} {
		if part[1] != "" {
			parts = append(parts, fmt.Sprintf("%s %q", part[0], part[1]))
		}
	}
	return strings.Join(parts, ", ")
}

// Select returns the cases of a selection. It is an error if there are none.
func Select(cases []suite.Case, s Selection) ([]suite.Case, error) {
	focus, err := expression("focus", s.Focus)
	if err != nil {
		return nil, err
	}
	skip, err := expression("skip", s.Skip)
	if err != nil {
		return nil, err
	}
	labelled, err := ParseLabels(s.Labels)
	if err != nil {
		return nil, fmt.Errorf("select cases: %w", err)
	}
	var chosen []suite.Case
	for _, c := range cases {
		if matches(focus, c) && (s.Skip == "" || !matches(skip, c)) && labelled(Labels(c)) {
			chosen = append(chosen, c)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("select cases: none of the %d cases matches %s; list them to see their names", len(cases), s)
	}
	return chosen, nil
}

func expression(name, text string) (*regexp.Regexp, error) {
	parsed, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("select cases: %s is not a regular expression: %w", name, err)
	}
	return parsed, nil
}

func matches(expression *regexp.Regexp, c suite.Case) bool {
	return expression.MatchString(c.ID) || expression.MatchString(string(c.Area)) || expression.MatchString(c.Promise)
}
