package lint

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// revealed is the rule that what a package exports has no type of an internal package: whoever
// uses this module as a library could not name it, nor make a value for it.
func revealed(t *tree) []string {
	var complaints []string
	for _, f := range t.files {
		if !f.isGo() || f.isTest() || t.nested(f) || f.pkg == "main" || isInternal(f.dir()) {
			continue
		}
		parsed, lineOf := f.syntax()
		hidden := internalImports(f, parsed)
		ast.FileExports(parsed)
		for _, decl := range parsed.Decls {
			if exported(decl) == 0 {
				continue
			}
			for _, use := range hiddenTypes(decl, hidden) {
				name := use.X.(*ast.Ident).Name + "." + use.Sel.Name
				complaints = append(complaints, complaint(f, lineOf(use), "an exported signature has the internal "+
					"type %s: move it to a package that users may import, or take or return another", name))
			}
		}
	}
	return complaints
}

func isInternal(pkg string) bool { return slices.Contains(strings.Split(pkg, "/"), "internal") }

// internalImports returns the names by which a file calls internal packages.
func internalImports(f file, parsed *ast.File) map[string]bool {
	names := map[string]bool{}
	for i, spec := range parsed.Imports {
		imported := f.imports[i].path
		inside, ok := strings.CutPrefix(imported, modulePath+"/")
		if !ok || !isInternal(inside) {
			continue
		}
		name := path.Base(imported)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = true
	}
	return names
}

// hiddenTypes returns the types of internal packages in a declaration from which FileExports has
// taken what is not exported.
func hiddenTypes(decl ast.Decl, hidden map[string]bool) (uses []*ast.SelectorExpr) {
	ast.Inspect(decl, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.FuncDecl:
			n.Body = nil
		case *ast.ValueSpec:
			n.Values = nil // they are used, and not seen: var ErrA = internal.ErrA
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && hidden[x.Name] {
				uses = append(uses, n)
			}
		}
		return true
	})
	return uses
}

func TestRevealed(t *testing.T) { obeys(t, revealed(repository(t))) }

func TestRevealedComplains(t *testing.T) {
	source := func(pkg, text string) string {
		return fmt.Sprintf("package %s\nimport p %s\n%s", pkg, strconv.Quote(modulePath+"/internal/p"), text)
	}
	try(t, revealed, []fixture{
		{"good", map[string]string{
			"a/a.go": source("a", "func f(p.T) {}\nfunc F() { p.G() }\nvar E = p.E\nvar h p.T\n"+
				"type A struct{ b p.T }\nfunc (A) c(p.T) {}\ntype d struct{ D p.T }\nfunc (d) F(p.T) {}\n"+
				"type I interface{ j(p.T) }\n"),
			"a/a_test.go":          source("a", "func F(p.T) {}\n"),
			"a/internal/b/b.go":    source("b", "func F(p.T) {}\n"),
			"cmd/main.go":          source("main", "func F(p.T) {}\n"),
			"a/other.go":           "package a\nimport \"other.test/internal/p\"\nfunc G(p.T) {}\n",
			"examples/a/go.mod":    "module a.test\n",
			"examples/a/nested.go": source("a", "func F(p.T) {}\n"),
		}, nil},
		{"bad", map[string]string{
			"a/a.go": source("a", "func F(x []*p.A) {}\ntype S struct{ E map[string]p.B }\ntype L = p.C\n"+
				"type I interface{ M() p.D }\nvar V p.E\nfunc G[T p.F]() {}\nfunc (*S) M(func(p.G)) {}\n"+
				"type N struct{ *p.H }\n"),
			"a/b.go": "package a\nimport \"" + modulePath + "/a/internal/q\"\nfunc H() q.T { return nil }\n",
		}, []string{
			"a/a.go:3: an exported signature has the internal type p.A", "a.go:4:", "p.C:", "p.D:", "p.E:", "p.F:",
			"p.G:", "p.H:", "a/b.go:3: an exported signature has the internal type q.T",
		}},
	})
}
