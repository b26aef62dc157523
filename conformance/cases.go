package conformance

import (
	"io/fs"
	"path"
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
		for _, c := range area.cases {
			c.Area, c.Sources = area.name, folder(area.name)
			c.System, _, _ = strings.Cut(c.ID, "/")
			all = append(all, c)
		}
	}
	return all
}

// folder has the source of an area's cases.
type folder string

// ReadFile implements fs.ReadFileFS.
func (f folder) ReadFile(name string) ([]byte, error) {
	return cases.Sources.ReadFile(path.Join(string(f), name))
}

// Open implements fs.FS.
func (f folder) Open(name string) (fs.File, error) {
	return cases.Sources.Open(path.Join(string(f), name))
}
