package contract

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCoverage checks that every function of upstream's contract runs on each layer or
// is listed with the reason why not. It fails when upstream adds one.
func TestCoverage(t *testing.T) {
	contract := contractFunctions(t)
	require.Greater(t, len(contract), 50)
	for layer, l := range map[string]struct {
		file string
		not  map[string]string
	}{"etcd3": {"etcd3_test.go", notOnEtcd3()}, "cacher": {"cacher_test.go", notOnCacher()}} {
		runs := referencedIn(t, "shared_test.go")
		maps.Copy(runs, referencedIn(t, l.file))
		for _, problem := range coverage(contract, runs, l.not) {
			t.Errorf("%s: %s", layer, problem)
		}
	}
}

// notOnEtcd3 lists the functions of upstream's contract that do not apply to a plain
// etcd3 store, and why.
func notOnEtcd3() map[string]string {
	return map[string]string{
		"RunTestOptionalWatchBookmarksWithCorrectResourceVersion": "a plain store sends no bookmarks, only a watch cache does",
	}
}

// notOnCacher lists the functions of upstream's contract that do not apply to a watch
// cache, and why.
func notOnCacher() map[string]string {
	const noErrors = "a watch cache does not pass on errors of the store: it relists, and answers from what it has"
	return map[string]string{
		"RunTestGetListWithErrorAggregation":    noErrors,
		"RunTestGetListWithoutErrorAggregation": noErrors,
		"RunTestListInconsistentContinuation":   "a watch cache ignores the limit at resource version 0, where the function begins",
		"RunOptionalTestProgressNotify":         "a watch cache consumes the store's progress notifications and sends its own watches bookmarks",
		"RunTestTransformationFailure":          noErrors,
		"RunTestWatchError":                     noErrors,
		"RunTestWatchWithUnsafeDelete":          noErrors,
		"RunWatchErrorIsBlockingFurtherEvents":  noErrors,
	}
}

// coverage compares upstream's functions with those that run and those excused.
func coverage(contract, runs map[string]bool, not map[string]string) (problems []string) {
	for name := range contract {
		if !runs[name] && not[name] == "" {
			problems = append(problems, name+" does not run; add a case, or a reason why not")
		}
	}
	for name := range not {
		switch {
		case !contract[name]:
			problems = append(problems, name+" is excused but does not exist upstream")
		case runs[name]:
			problems = append(problems, name+" is excused but runs")
		}
	}
	slices.Sort(problems)
	return problems
}

func TestCoverageComplains(t *testing.T) {
	contract := map[string]bool{"RunTestNew": true, "RunTestBoth": true, "RunTestFine": true, "RunTestNoReason": true}
	runs := map[string]bool{"RunTestBoth": true, "RunTestFine": true}
	not := map[string]string{"RunTestBoth": "why", "RunTestGone": "why", "RunTestNoReason": ""}
	assert.Equal(t, []string{
		"RunTestBoth is excused but runs",
		"RunTestGone is excused but does not exist upstream",
		"RunTestNew does not run; add a case, or a reason why not",
		"RunTestNoReason does not run; add a case, or a reason why not",
	}, coverage(contract, runs, not))
}

// contractFunctions lists upstream's exported functions that take a testing.T. Those
// for benchmarks take a testing.B.
func contractFunctions(t *testing.T) map[string]bool {
	t.Helper()
	var stderr bytes.Buffer
	list := exec.Command("go", "list", "-f", "{{.Dir}}", "k8s.io/apiserver/pkg/storage/testing")
	list.Stderr = &stderr
	dir, err := list.Output()
	require.NoError(t, err, stderr.String())
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "*.go"))
	require.NoError(t, err)
	all := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, decl := range parse(t, file).Decls {
			f, ok := decl.(*ast.FuncDecl)
			if ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Run") && takesTest(f) {
				all[f.Name.Name] = true
			}
		}
	}
	return all
}

func takesTest(f *ast.FuncDecl) bool {
	for _, param := range f.Type.Params.List {
		typ := param.Type
		if star, ok := typ.(*ast.StarExpr); ok {
			typ = star.X
		}
		if sel, ok := typ.(*ast.SelectorExpr); ok && (sel.Sel.Name == "T" || sel.Sel.Name == "TB") {
			return true
		}
	}
	return false
}

// referencedIn lists the functions of upstream's package that a file here uses.
func referencedIn(t *testing.T, file string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	ast.Inspect(parse(t, file), func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "storagetesting" {
				all[sel.Sel.Name] = true
			}
		}
		return true
	})
	return all
}

func parse(t *testing.T, file string) *ast.File {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	require.NoError(t, err)
	return parsed
}

// TestCasesAreNamedAfterUpstream checks that every case is named after its upstream
// function, and that none is there twice under the same gates.
func TestCasesAreNamedAfterUpstream(t *testing.T) {
	contract := contractFunctions(t)
	seen := map[string]bool{}
	for _, c := range casesOn("store", nil) {
		words := strings.Split(c.name, "/")
		require.GreaterOrEqual(t, len(words), 3, c.name)
		known := slices.ContainsFunc([]string{"RunTest", "Run", "RunOptionalTest"}, func(prefix string) bool { return contract[prefix+words[2]] })
		assert.True(t, known, "upstream has no function for %s", c.name)
		key := gatesName(nonDefault(c.gates)) + " " + c.name
		assert.False(t, seen[key], "%s is there twice", key)
		seen[key] = true
	}
	assert.NotEmpty(t, slices.Collect(maps.Keys(seen)))
}
