package lint

import (
	"go/ast"
	"testing"
)

// cleanups is the rule that a cleanup does not use the context of its test: that has ended by
// then, so what waits with it gives up at once, or does not, as the scheduler likes.
func cleanups(t *tree) []string {
	var complaints []string
	for _, f := range t.files {
		if !f.isTest() {
			continue
		}
		parsed, lineOf := f.syntax()
		ast.Inspect(parsed, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok || method(call) != "Cleanup" {
				return true
			}
			for _, ended := range endedContexts(call) {
				complaints = append(complaints, complaint(f, lineOf(ended), "the context of a test has ended when its cleanups run: use context.Background or context.WithoutCancel"))
			}
			return false
		})
	}
	return complaints
}

// method returns the name of the method that is called, "" if it is a function.
func method(call *ast.CallExpr) string {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	return selector.Sel.Name
}

// endedContexts returns the calls of t.Context in a cleanup that are not made to outlive t.
func endedContexts(cleanup *ast.CallExpr) []*ast.CallExpr {
	var found []*ast.CallExpr
	ast.Inspect(cleanup, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch {
		case method(call) == "WithoutCancel":
			return false
		case method(call) == "Context" && isT(call):
			found = append(found, call)
		}
		return true
	})
	return found
}

// isT reports whether a method is one of t, tb or b: requests have contexts too.
func isT(call *ast.CallExpr) bool {
	of, ok := call.Fun.(*ast.SelectorExpr).X.(*ast.Ident)
	return ok && (of.Name == "t" || of.Name == "tb" || of.Name == "b")
}

func TestCleanups(t *testing.T) { obeys(t, cleanups(repository(t))) }

func TestCleanupsComplains(t *testing.T) {
	in := func(body string) map[string]string {
		return map[string]string{"a/a_test.go": "package a\n\nfunc TestA(t *testing.T) {\n\t" + body + "\n}\n"}
	}
	of := []string{"a/a_test.go:4: the context of a test has ended when its cleanups run"}
	try(t, cleanups, []fixture{
		{"in a cleanup", in("t.Cleanup(func() { a.Stop(t.Context()) })"), of},
		{"of a benchmark", in("b.Cleanup(func() { a.Stop(b.Context()) })"), of},
		{"after the test", in("t.Cleanup(func() { a.Stop(context.WithoutCancel(t.Context())) })"), nil},
		{"of a request", in("t.Cleanup(func() { a.Stop(req.Context()) })"), nil},
		{"in a test", in("a.Stop(t.Context())"), nil},
	})
}
