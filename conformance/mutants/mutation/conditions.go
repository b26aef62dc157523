package mutation

import (
	"go/ast"
	"go/token"
)

// branch finds what can be changed about an if, and reports whether to look inside.
func (s *search) branch(n *ast.IfStmt) bool {
	if n.Else == nil && s.quietBlock(n.Body) || quiet.MatchString(s.text(n.Cond)) {
		return false
	}
	cond := s.text(n.Cond)
	if !onlyError(n.Cond) { // which every request would show
		s.add(Negate, n.Cond, "("+switched+" != (", "))", "if "+cond+" => if !("+cond+")")
	}
	if n.Else == nil && returns(n.Body) {
		s.add(DropReturn, n.Cond, "((", ") && !"+switched+")", "if "+cond+" { return } => never")
	}
	for _, change := range s.constants(n.Cond) {
		s.either(Constant, n.Cond, change)
	}
	return true
}

// onlyError reports whether a condition asks for nothing but an error.
func onlyError(cond ast.Expr) bool {
	comparison, ok := cond.(*ast.BinaryExpr)
	if !ok {
		return false
	}
	x, isName := comparison.X.(*ast.Ident)
	y, isNil := comparison.Y.(*ast.Ident)
	return isName && isNil && x.Name == "err" && y.Name == "nil"
}

// returns reports whether a block ends with a return.
func returns(block *ast.BlockStmt) bool {
	if len(block.List) == 0 {
		return false
	}
	_, ok := block.List[len(block.List)-1].(*ast.ReturnStmt)
	return ok
}

var (
	otherLogic    = map[token.Token]string{token.LAND: "||", token.LOR: "&&"}
	otherBoundary = map[token.Token]string{token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">"}
)

// binary finds what can be changed about an expression with an operator.
func (s *search) binary(n *ast.BinaryExpr) {
	operator, other := AndOr, otherLogic[n.Op]
	if other == "" {
		operator, other = Boundary, otherBoundary[n.Op]
	}
	if other != "" {
		// The operands keep what binds them together.
		text := "(" + s.text(n.X) + ") " + other + " (" + s.text(n.Y) + ")"
		s.either(operator, n, variant{text, n.Op.String() + " => " + other + " in: " + s.text(n)})
	}
}

// either adds a mutant that judges by another condition.
func (s *search) either(operator Operator, cond ast.Expr, other variant) {
	if s.tooLong(cond) {
		return
	}
	s.add(operator, cond, "("+switched+" && ("+other.text+") || !"+switched+" && (", "))", other.change)
}

// tooLong reports whether a node is too long to be repeated, or has functions in it.
func (s *search) tooLong(n ast.Node) bool {
	long := len(s.text(n)) > longest
	ast.Inspect(n, func(n ast.Node) bool {
		if _, ok := n.(*ast.FuncLit); ok {
			long = true
		}
		return !long
	})
	return long
}
