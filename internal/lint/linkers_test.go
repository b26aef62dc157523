package lint

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// linkers are the packages whose tests link the server chain, which takes ten seconds and 200
// MB for each of them whenever the chain has changed. Tests that need no server stay out.
var linkers = []string{
	"bench", "cmd/snowglobe", "conformance", "envtest", "envtest/chain", "envtest/chain/bootstrap",
	"envtest/controllerruntime", "envtest/controllers", "envtest/soak", "scenarios", "scenarios/commands/clients",
}

// upstreamPath is the module that makes linking slow.
const upstreamPath = "k8s.io/kubernetes"

// linked is the rule that only the tests of some packages link the server chain.
func linked(allowed []string) func(t *tree) []string {
	return func(t *tree) []string {
		imports, tested := t.importsByFolder()
		var found, complaints []string
		for _, dir := range slices.Sorted(maps.Keys(tested)) {
			if reaches(imports, slices.Concat(imports[dir], tested[dir]), upstreamPath) {
				found = append(found, dir)
			}
		}
		for _, dir := range found {
			if !slices.Contains(allowed, dir) {
				complaints = append(complaints, "the tests of "+dir+" link the API server: move those that need it to one of linkers, or cut the import")
			}
		}
		for _, dir := range allowed {
			if !slices.Contains(found, dir) {
				complaints = append(complaints, "the tests of "+dir+" do not link the API server: take it out of linkers")
			}
		}
		return complaints
	}
}

// importsByFolder returns what packages import, and what their tests import besides.
func (t *tree) importsByFolder() (imports, tested map[string][]string) {
	imports, tested = map[string][]string{}, map[string][]string{}
	for _, f := range t.files {
		if !f.isGo() || t.nested(f) {
			continue
		}
		of := imports
		if f.isTest() {
			of = tested
		}
		for _, i := range f.imports {
			of[f.dir()] = append(of[f.dir()], strings.TrimPrefix(i.path, modulePath+"/"))
		}
	}
	return imports, tested
}

// reaches reports whether one of the packages is in a module, or imports one that is.
func reaches(imports map[string][]string, packages []string, module string) bool {
	seen := map[string]bool{}
	for todo := packages; len(todo) > 0; todo = todo[1:] {
		if covers(module+"/...", todo[0]) {
			return true
		}
		if !seen[todo[0]] {
			seen[todo[0]] = true
			todo = append(todo, imports[todo[0]]...)
		}
	}
	return false
}

func TestLinked(t *testing.T) { obeys(t, linked(linkers)(repository(t))) }

func TestLinkedComplains(t *testing.T) {
	const upstream, chain = `import _ "` + upstreamPath + `/pkg"`, `import _ "` + modulePath + `/chain"`
	files := map[string]string{
		"chain/chain.go": "package chain\n" + upstream, "chain/chain_test.go": "package chain\n" + `import "testing"`,
		"face/face.go": "package face\n" + chain, "face/face_test.go": "package face_test\n" + `import _ "` + modulePath + `/face"`,
		"light/light.go": "package light\n", "light/light_test.go": "package light\n" + `import "testing"`,
		"untested/untested.go": "package untested\n" + chain,
	}
	try(t, linked([]string{"chain", "face"}), []fixture{{"good", files, nil}})
	try(t, linked([]string{"light", "face"}), []fixture{{"bad", files, []string{
		"tests of chain link the API server", "tests of light do not link the API server",
	}}})
}
