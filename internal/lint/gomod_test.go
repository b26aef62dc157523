package lint

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// notStaging are the k8s.io modules that are not published from the kubernetes
// repository, and so have versions of their own.
var notStaging = []string{
	"k8s.io/gengo",
	"k8s.io/gengo/v2",
	"k8s.io/klog",
	"k8s.io/klog/v2",
	"k8s.io/kube-openapi",
	"k8s.io/system-validators",
	"k8s.io/utils",
}

// pinsPath is the file that holds the staging modules in go.mod.
const pinsPath = "internal/pins/pins.go"

// clientPath is the module of tests whose pins are older than this one's.
const clientPath = modulePath + "/envtest/client"

// modules is the rule for go.mod files: nothing is replaced except the two modules in the
// examples, and every staging module is at the linked release and held there by an
// import.
func modules(t *tree) []string {
	var complaints []string
	pinned := map[string]bool{}
	for _, f := range t.files {
		if f.path == pinsPath {
			for _, i := range f.imports {
				words := strings.SplitN(i.path, "/", 3)
				pinned[path.Join(words[:min(2, len(words))]...)] = true
			}
		}
	}
	for _, f := range t.files {
		if path.Base(f.path) != "go.mod" {
			continue
		}
		parsed, err := modfile.Parse(f.path, f.text, nil)
		if err != nil {
			complaints = append(complaints, complaint(f, 1, "%v", err))
			continue
		}
		if f.path == "go.mod" {
			complaints = append(complaints, pins(f, parsed, pinned)...)
		}
		for _, r := range parsed.Replace {
			if f.path == "go.mod" || r.Old.Path != modulePath && r.Old.Path != clientPath {
				complaints = append(complaints, complaint(f, r.Syntax.Start.Line,
					"replace of %s: modules that require this one would not get it; require a version that works", r.Old.Path))
			}
		}
	}
	return complaints
}

// pins checks the versions of the root module.
func pins(f file, parsed *modfile.File, pinned map[string]bool) []string {
	var complaints []string
	release := ""
	for _, r := range parsed.Require {
		if r.Mod.Path == "k8s.io/kubernetes" {
			release = r.Mod.Version
		}
	}
	minor, ok := strings.CutPrefix(release, "v1.")
	if !ok {
		return []string{complaint(f, 1, "k8s.io/kubernetes v1.x is not required; the version is %q", release)}
	}
	want := "v0." + minor
	for _, r := range parsed.Require {
		name := r.Mod.Path
		if !strings.HasPrefix(name, "k8s.io/") || name == "k8s.io/kubernetes" || slices.Contains(notStaging, name) {
			continue
		}
		if r.Mod.Version != want {
			complaints = append(complaints, complaint(f, r.Syntax.Start.Line, "%s %s does not match k8s.io/kubernetes %s: want %s", name, r.Mod.Version, release, want))
		}
		if !pinned[name] {
			complaints = append(complaints, complaint(f, r.Syntax.Start.Line, "%s is not imported by %s: go mod tidy would drop it", name, pinsPath))
		}
		delete(pinned, name)
	}
	for name := range pinned {
		if strings.HasPrefix(name, "k8s.io/") {
			complaints = append(complaints, complaint(f, 1, "%s is imported by %s but not required: go get %s@%s", name, pinsPath, name, want))
		}
	}
	return complaints
}

func TestModules(t *testing.T) { obeys(t, modules(repository(t))) }

func TestModulesComplains(t *testing.T) {
	mod := func(lines ...string) string {
		return fmt.Sprintf("module %s\n\nrequire k8s.io/kubernetes v1.37.1\n%s\n", modulePath, strings.Join(lines, "\n"))
	}
	pin := "package pins\nimport _ \"k8s.io/api\"\nimport _ \"k8s.io/metrics/pkg/apis/metrics\"\n"
	try(t, modules, []fixture{
		{"good", map[string]string{
			"go.mod":                   mod("require k8s.io/api v0.37.1", "require k8s.io/metrics v0.37.1 // indirect", "require k8s.io/klog/v2 v2.140.0"),
			pinsPath:                   pin,
			"examples/consumer/go.mod": "module example.test\nrequire " + modulePath + " v0.0.0\nreplace " + modulePath + " => ../..\n",
			"examples/pinned/go.mod":   "module example.test\nreplace " + clientPath + " => ../../envtest/client\n",
		}, nil},
		{"wrong versions", map[string]string{
			"go.mod": mod("require k8s.io/api v0.37.0", "require k8s.io/metrics v0.0.0"),
			pinsPath: pin,
		}, []string{"go.mod:4: k8s.io/api v0.37.0 does not match", "go.mod:5: k8s.io/metrics v0.0.0 does not match"}},
		{"not pinned", map[string]string{
			"go.mod": mod("require k8s.io/api v0.37.1", "require k8s.io/metrics v0.37.1", "require k8s.io/cri-api v0.37.1"),
			pinsPath: pin,
		}, []string{"k8s.io/cri-api is not imported by"}},
		{"not required", map[string]string{
			"go.mod": mod("require k8s.io/api v0.37.1"),
			pinsPath: pin,
		}, []string{"k8s.io/metrics is imported by"}},
		{"replace", map[string]string{
			"go.mod": mod("require k8s.io/api v0.37.1", "require k8s.io/metrics v0.37.1", "replace k8s.io/api => ../api"),
			pinsPath: pin,
		}, []string{"go.mod:6: replace of k8s.io/api"}},
		{"replace in an example", map[string]string{
			"go.mod":                   mod("require k8s.io/api v0.37.1", "require k8s.io/metrics v0.37.1"),
			pinsPath:                   pin,
			"examples/consumer/go.mod": "module example.test\nreplace k8s.io/api v0.0.0 => k8s.io/api v0.37.1\n",
		}, []string{"examples/consumer/go.mod:2: replace of k8s.io/api"}},
		{"no kubernetes", map[string]string{"go.mod": "module " + modulePath + "\n"}, []string{"k8s.io/kubernetes v1.x is not required"}},
		{"no go.mod syntax", map[string]string{"go.mod": "modul x\n"}, []string{"unknown directive"}},
	})
}
