package lint

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// imports is the rule that imports follow the policy.
func (a *arrows) imports(t *tree) []string {
	var complaints []string
	for _, f := range t.files {
		if !f.isGo() || t.nested(f) || slices.Contains(strings.Split(f.path, "/"), "testdata") {
			continue
		}
		key, ok := ruling(a.may, f.dir())
		if !ok {
			complaints = append(complaints, complaint(f, 1, "package %s is not in the import policy: add a line for it", f.dir()))
			continue
		}
		start := a.may[key]
		if f.isTest() {
			testKey, _ := ruling(a.tests, f.dir())
			start = slices.Concat(start, a.tests[testKey], []string{f.dir()})
		}
		reach := a.reach(start)
		for _, i := range f.imports {
			if why := a.refuse(f, i.path, reach); why != "" {
				complaints = append(complaints, complaint(f, i.line, "%s", why))
			}
		}
	}
	return complaints
}

// refuse returns why a file must not have an import, or nothing if it may.
func (a *arrows) refuse(f file, importPath string, reach []string) string {
	inside, ok := strings.CutPrefix(importPath, modulePath+"/")
	if ok || importPath == modulePath {
		if !slices.ContainsFunc(reach, func(p string) bool { return covers(p, inside) }) {
			return f.dir() + " must not import " + inside + ": the policy has no arrow there"
		}
		return a.reserved(f, inside)
	}
	if first, _, _ := strings.Cut(importPath, "/"); !strings.Contains(first, ".") {
		return "" // the standard library
	}
	if why := a.reserved(f, importPath); why != "" {
		return why
	}
	if key, ok := ruling(a.uses, f.dir()); ok && !f.isTest() {
		if !slices.ContainsFunc(a.uses[key], func(p string) bool { return covers(p, importPath) }) {
			return f.dir() + " must stay light and not import " + importPath
		}
	}
	return ""
}

// reserved says why a file must not have an import that only some may have.
func (a *arrows) reserved(f file, imported string) string {
	key, ok := ruling(a.only, imported)
	if !ok || imported == f.dir() || slices.ContainsFunc(a.only[key], func(p string) bool { return covers(p, f.dir()) }) {
		return ""
	}
	return f.dir() + " must not import " + imported + ": only " + strings.Join(a.only[key], " and ") + " may"
}

func readPolicy(t *testing.T) *arrows {
	t.Helper()
	a, err := parsePolicy(policy)
	require.NoError(t, err)
	return a
}

func TestImports(t *testing.T) { obeys(t, readPolicy(t).imports(repository(t))) }

func TestImportsComplains(t *testing.T) {
	source := func(name string, paths ...string) string {
		var b strings.Builder
		b.WriteString("package " + path.Base(name) + "\n")
		for _, p := range paths {
			b.WriteString("import _ \"" + p + "\"\n")
		}
		return b.String()
	}
	one := func(name string, imports ...string) map[string]string {
		return map[string]string{name: source("x", imports...)}
	}
	const m = modulePath + "/"
	try(t, readPolicy(t).imports, []fixture{
		{"all downhill", map[string]string{
			"cmd/snowglobe/main.go":           source("main", m+"scenarios", m+"conformance", m+"bench/watch", m+"envtest", "fmt"),
			"scenarios/engine.go":             source("scenarios", m+"envtest", m+"envtest/trace", m+"fakes/oidc"),
			"envtest/start.go":                source("envtest", m+"envtest/chain", m+"envtest/storage/memory", m+"envtest/trace", "k8s.io/client-go/rest"),
			"envtest/chain/generic.go":        source("chain", m+"envtest/storage", m+"envtest/trace", "k8s.io/kubernetes/pkg/controlplane"),
			"envtest/chain/chain_test.go":     source("chain_test", m+"envtest/chain", m+"envtest/storage/memory", m+"fakes/etcd"),
			"envtest/memnet/listener_test.go": source("memnet", "golang.org/x/net/nettest"),
			"envtest/trace/text_test.go":      source("trace", "go.uber.org/goleak"),
			"envtest/storage/memory/a.go":     source("memory", m+"envtest/storage", m+"fakes/etcd"),
			"examples/consumer/go.mod":        "module example.test\n",
			"examples/consumer/a_test.go":     source("consumer", m+"envtest/chain", "k8s.io/kubernetes/pkg/features"),
			"scenarios/testdata/bad/main.go":  source("main", m+"bench"),
		}, nil},
		{"fakes climb", one("fakes/etcd/a.go", m+"envtest/memnet"), []string{"fakes/etcd/a.go:2: fakes/etcd must not import envtest/memnet"}},
		{"siblings", one("scenarios/a.go", m+"conformance"), []string{"must not import conformance"}},
		{"siblings below", one("bench/watch/a.go", m+"scenarios/library"), []string{"must not import scenarios/library"}},
		{"no package imports cmd", one("scenarios/a_test.go", m+"cmd/snowglobe"), []string{"must not import cmd/snowglobe"}},
		{"chain to face", one("envtest/chain/a.go", m+"envtest"), []string{"must not import envtest:"}},
		{"chain to a kind of store", one("envtest/chain/a.go", m+"envtest/storage/memory"), []string{"must not import envtest/storage/memory"}},
		{"storage face to kinds", one("envtest/storage/a.go", m+"envtest/storage/memory"), []string{"must not import envtest/storage/memory"}},
		{"fault to chain", one("envtest/fault/a.go", m+"envtest/chain"), []string{"must not import envtest/chain"}},
		{"trace to fault", one("envtest/trace/a.go", m+"envtest/fault"), []string{"must not import envtest/fault"}},
		{"trace grows heavy", one("envtest/trace/a.go", "k8s.io/klog/v2"), []string{"must stay light"}},
		{"kubernetes elsewhere", one("conformance/a_test.go", "k8s.io/kubernetes/pkg/features"),
			[]string{"only envtest/chain and envtest/chain/bootstrap and envtest/controllers and envtest/linked and " +
				"envtest/serverflags may"}},
		{"past the face", one("conformance/a_test.go", m+"envtest/chain"), []string{"only envtest and envtest/chain/... may"}},
		{"no address", one("envtest/helpers/a.go"), []string{"envtest/helpers is not in the import policy"}},
		{"the root", one("a.go"), []string{"is not in the import policy"}},
	})
}

func TestParsePolicyRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"a b":              "line 1",
		"\na":              "line 2",
		"a -> b\na -> c":   `"a" is ruled twice`,
		"a (test) uses b":  "line 1",
		"a may import all": "line 1",
	} {
		_, err := parsePolicy(text)
		assert.ErrorContains(t, err, want, "%q", text)
	}
}
