package conformance

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"

	"snowglobe.test/conformance/cases"
)

// statementAt is the statement at a line of the cases' source, on one line; empty if there
// is none.
func statementAt(file string, line int) string {
	text, err := cases.Sources.ReadFile(file)
	if err != nil {
		return ""
	}
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, text, parser.SkipObjectResolution)
	if err != nil {
		return ""
	}
	var innermost ast.Stmt
	ast.Inspect(parsed, func(node ast.Node) bool {
		if node == nil || files.Position(node.Pos()).Line > line || files.Position(node.End()).Line < line {
			return false
		}
		if statement, ok := node.(ast.Stmt); ok {
			if _, block := node.(*ast.BlockStmt); !block {
				innermost = statement
			}
		}
		return true
	})
	if innermost == nil {
		return ""
	}
	from, to := files.Position(innermost.Pos()).Offset, files.Position(innermost.End()).Offset
	return strings.Join(strings.Fields(string(text[from:to])), " ")
}
