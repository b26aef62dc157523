package lint

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

// assertions is the rule that a condition whose only consequence is that a test fails is one of
// testify's assertions. It may be an if with t.Error or t.Fatal in a benchmark, whose loops would
// measure the assertion, in an example, whose readers choose for themselves, in a command of
// testscript, which has no testing.T, and with a message that only a failure can make: an
// assertion would make it every time.
func assertions(t *tree) []string {
	var complaints []string
	for _, f := range t.files {
		if !f.isTest() || strings.HasPrefix(f.path, "examples/") {
			continue
		}
		parsed, lineOf := f.syntax()
		ast.Inspect(parsed, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.FuncDecl:
				return !strings.HasPrefix(node.Name.Name, "Example") && !takes(node.Type, "B", "TestScript")
			case *ast.FuncLit:
				return !takes(node.Type, "B", "TestScript")
			case *ast.IfStmt:
				if call := onlyCall(node); call != nil && f.fails(call) {
					complaints = append(complaints, complaint(f, lineOf(node), "this condition only fails the test: make it an assertion of testify"))
				}
			}
			return true
		})
	}
	return complaints
}

// takes reports whether a function has a pointer to one of these types.
func takes(function *ast.FuncType, types ...string) bool {
	return slices.ContainsFunc(function.Params.List, func(param *ast.Field) bool {
		pointer, ok := param.Type.(*ast.StarExpr)
		if !ok {
			return false
		}
		of, ok := pointer.X.(*ast.SelectorExpr)
		return ok && slices.Contains(types, of.Sel.Name)
	})
}

// onlyCall returns the call that is all an if does, nil if it does something else.
func onlyCall(branch *ast.IfStmt) *ast.CallExpr {
	if branch.Else != nil || len(branch.Body.List) != 1 {
		return nil
	}
	statement, ok := branch.Body.List[0].(*ast.ExprStmt)
	if !ok {
		return nil
	}
	call, _ := statement.X.(*ast.CallExpr)
	return call
}

// fails reports whether a call in a file is of a test's method that fails it, with a message
// that an assertion could have. The function log.Fatal is no method.
func (f file) fails(call *ast.CallExpr) bool {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains([]string{"Error", "Errorf", "Fatal", "Fatalf"}, method.Sel.Name) {
		return false
	}
	of, ok := method.X.(*ast.Ident)
	inPackage := ok && slices.ContainsFunc(f.imports, func(i imported) bool { return path.Base(i.path) == of.Name })
	return !inPackage && !slices.ContainsFunc(call.Args, onlyOnFailure)
}

// onlyOnFailure reports whether a part of a message calls a function, receives, or may panic
// where there is no failure.
func onlyOnFailure(part ast.Expr) bool {
	found := false
	ast.Inspect(part, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.CallExpr:
			name, ok := node.Fun.(*ast.Ident)
			found = found || !ok || name.Name != "len"
		case *ast.UnaryExpr:
			found = found || node.Op == token.ARROW
		case *ast.IndexExpr, *ast.SliceExpr, *ast.StarExpr, *ast.TypeAssertExpr:
			found = true
		}
		return true
	})
	return found
}

func TestAssertions(t *testing.T) { obeys(t, assertions(repository(t))) }

func TestAssertionsComplains(t *testing.T) {
	in := func(signature, body string) string {
		return "package a\n\nfunc " + signature + " {\n\t" + body + "\n}\n"
	}
	const plain, of = "if got != want {\n\t\tt.Errorf(\"got %d of %d\", got, len(all))\n\t}", "a/a_test.go:4: this condition only fails the test"
	try(t, assertions, []fixture{
		{"plain", map[string]string{"a/a_test.go": in("TestA(t *testing.T)", plain)}, []string{of}},
		{"in a helper", map[string]string{"a/a_test.go": in("check(t testing.TB, got int)", plain)}, []string{of}},
		{"with its own value", map[string]string{"a/a_test.go": in("TestA(t *testing.T)", "if err := do(); err != nil {\n\t\tt.Fatal(err)\n\t}")}, []string{of}},
		{"in a function of a test", map[string]string{"a/a_test.go": in("TestA(t *testing.T)", "t.Run(\"a\", func(t *testing.T) { if bad { t.Fatal() } })")}, []string{of}},
		{"not in a test", map[string]string{"a/a.go": in("a(t testing.TB)", plain)}, nil},
		{"in a benchmark", map[string]string{"a/a_test.go": in("BenchmarkA(b *testing.B)", "if bad { b.Fatal() }")}, nil},
		{"in a command of testscript", map[string]string{"a/a_test.go": in("exits(ts *testscript.TestScript)", "if bad { ts.Fatalf(\"usage\") }")}, nil},
		{"of another package", map[string]string{"a/a_test.go": "package a\n\nimport (\n\t\"log\"\n\t\"x/require\"\n)\n\nfunc a() {\n\tif bad { log.Fatal() }\n\tif bad { require.Error(t, err) }\n}\n"}, nil},
		{"in an example", map[string]string{"a/a_test.go": in("Example()", "_ = func(t *testing.T) { if bad { t.Fatal() } }"), "examples/b/b_test.go": in("TestB(t *testing.T)", plain)}, nil},
		{"with more consequences", map[string]string{"a/a_test.go": in("TestA(t *testing.T)", "if bad { t.Error(); return }\n\tif good { try() } else { t.Fatal() }")}, nil},
		{"with a message of failures", map[string]string{"a/a_test.go": in("TestA(t *testing.T)", "if bad { t.Error(diff()) }\n\tif bad { t.Error(<-failed) }\n\tif bad { t.Error(all[0]) }")}, nil},
	})
}
