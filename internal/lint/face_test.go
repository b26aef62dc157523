package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// face is the package that most tests need nothing beside, and mostNames is how many names it
// may have: constants, variables, functions, types and methods, as many as one can get to know.
const (
	face      = "envtest"
	mostNames = 70
)

// small is the rule that the face stays small.
func small(t *tree) []string {
	count := 0
	for _, f := range t.files {
		if f.dir() != face || !f.isGo() || f.isTest() {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.path, f.text, parser.SkipObjectResolution)
		if err != nil {
			return []string{err.Error()}
		}
		ast.FileExports(parsed)
		for _, decl := range parsed.Decls {
			count += exported(decl)
		}
	}
	if count <= mostNames {
		return nil
	}
	return []string{fmt.Sprintf("package %s has %d names, and %d at most: what few need belongs in a package of its own", face, count, mostNames)}
}

// exported counts the names of a declaration without those that are not exported.
func exported(decl ast.Decl) (count int) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return 1
		}
		of := d.Recv.List[0].Type
		if pointer, ok := of.(*ast.StarExpr); ok {
			of = pointer.X
		}
		if ident, ok := of.(*ast.Ident); ok && ident.IsExported() {
			return 1
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.ValueSpec:
				count += len(s.Names)
			case *ast.TypeSpec:
				count++
			}
		}
	}
	return count
}

func TestSmall(t *testing.T) { obeys(t, small(repository(t))) }

func TestSmallComplains(t *testing.T) {
	const counted = 6
	text := "package envtest\nimport \"fmt\"\nconst A, b = 1, 2\nvar C int\ntype D struct{ E int }\ntype f struct{}\n" +
		"func (D) G() {}\nfunc (*D) H() {}\nfunc (f) I() {}\nfunc (d D) j() {}\nfunc K() {}\nfunc l() {}\n"
	more := func(n int) (text string) {
		for i := range n {
			text += fmt.Sprintf("var X%d int\n", i)
		}
		return text
	}
	try(t, small, []fixture{
		{"many", map[string]string{"envtest/a.go": text + more(mostNames-counted), "envtest/b/b.go": text, "envtest/a_test.go": text}, nil},
		{"too many", map[string]string{"envtest/a.go": text + more(mostNames-counted), "envtest/b.go": strings.Repeat("\n", 3) + "package envtest\nfunc L() {}\n"},
			[]string{"package envtest has 71 names, and 70 at most"}},
	})
}
