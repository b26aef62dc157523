package mutation

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
)

// search collects the mutants of a function.
type search struct {
	fset     *token.FileSet
	src      string
	function string
	found    []candidate
}

// quiet matches the calls whose lack no client sees, such as logging, or makes a program hang
// and proves nothing.
var quiet = regexp.MustCompile(`(?i)klog|logger|\blog\b|httplog|metric|span\b|tracing|\btrace\b|` +
	`handleerror|handlecrash|\block$|unlock$|rlock$|` +
	`\bwg\.|waitgroup|cancel$|^close$|\.close$|^panic$|observe|\.inc$|stop$|recordlatency`)

// longest is how long a statement may be that a mutant repeats.
const longest = 800

// offset is where a position is in the source.
func (s *search) offset(p token.Pos) int { return s.fset.Position(p).Offset }

// text is the source of a node.
func (s *search) text(n ast.Node) string { return s.src[s.offset(n.Pos()):s.offset(n.End())] }

// add adds a mutant that puts text around a node.
func (s *search) add(operator Operator, n ast.Node, prefix, suffix, change string) {
	s.addSpan(operator, n.Pos(), n.End(), prefix, suffix, change)
}

func (s *search) addSpan(operator Operator, start, end token.Pos, prefix, suffix, change string) {
	s.found = append(s.found, candidate{
		function: s.function, operator: operator, line: s.fset.Position(start).Line, change: brief(change),
		edit: edit{start: s.offset(start), end: s.offset(end), prefix: prefix, suffix: suffix},
	})
}

// brief is text on one line, and not too long for a table.
func brief(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 160 {
		text = text[:157] + "..."
	}
	return text
}

// walk looks for mutants in a block and all that it holds.
func (s *search) walk(body *ast.BlockStmt) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			s.list(n.List)
		case *ast.CaseClause:
			s.list(n.Body)
		case *ast.CommClause:
			s.list(n.Body)
		case *ast.ForStmt: // whose condition, changed, runs past the end or for ever
			s.walk(n.Body)
			return false
		case *ast.IfStmt:
			return s.branch(n)
		case *ast.BinaryExpr:
			s.binary(n)
		case *ast.CallExpr:
			return !s.quietCall(n)
		}
		return true
	})
}

// quietCall reports whether no client sees a call.
func (s *search) quietCall(call *ast.CallExpr) bool { return quiet.MatchString(s.text(call.Fun)) }

// quietBlock reports whether a block has nothing but quiet calls.
func (s *search) quietBlock(block *ast.BlockStmt) bool {
	for _, statement := range block.List {
		expression, ok := statement.(*ast.ExprStmt)
		if !ok {
			return false
		}
		if call, ok := expression.X.(*ast.CallExpr); !ok || !s.quietCall(call) {
			return false
		}
	}
	return true
}
