package conformance

import (
	"cmp"
	"io/fs"
	"strings"

	"snowglobe.test/conformance/cases"
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
	name  string
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
		sources, err := fs.Sub(cases.Sources, area.name)
		if err != nil {
			panic(err) // the name is no path
		}
		for _, c := range area.cases {
			c.Area, c.Sources = area.name, sources
			c.Level = cmp.Or(c.Level, suite.Versioned)
			c.System, _, _ = strings.Cut(c.ID, "/")
			all = append(all, c)
		}
	}
	return all
}
