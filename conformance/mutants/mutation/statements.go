package mutation

import (
	"go/ast"
	"go/token"
)

// list finds what can be changed about the statements of a block.
func (s *search) list(statements []ast.Stmt) {
	for i, statement := range statements {
		switch n := statement.(type) {
		case *ast.ExprStmt:
			call, ok := n.X.(*ast.CallExpr)
			if !ok || s.quietCall(call) {
				continue
			}
			s.skip(n)
			s.replace(n)
			if i+1 < len(statements) {
				s.swap(n, statements[i+1])
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE || quiet.MatchString(s.text(n)) {
				continue
			}
			if lasting(n) {
				s.skip(n)
			}
			s.replace(n)
		case *ast.ReturnStmt:
			s.replace(n)
		}
	}
}

// lasting reports whether an assignment changes more than a variable of the function.
func lasting(n *ast.AssignStmt) bool {
	for _, left := range n.Lhs {
		if _, variable := left.(*ast.Ident); variable {
			return false
		}
	}
	return true
}

// skip adds a mutant that leaves a statement out.
func (s *search) skip(n ast.Stmt) {
	s.add(Skip, n, "if !"+switched+" { ", " }", s.text(n)+" => nothing")
}

// replace adds the mutants that do a statement in another way.
func (s *search) replace(n ast.Stmt) {
	if s.tooLong(n) {
		return
	}
	for _, change := range s.constants(n) {
		s.instead(Constant, n, change)
	}
	for _, change := range s.arguments(n) {
		s.instead(SwapArguments, n, change)
	}
}

// instead adds a mutant that does something else.
func (s *search) instead(operator Operator, n ast.Stmt, other variant) {
	s.add(operator, n, "if "+switched+" { "+other.text+" } else { ", " }", other.change)
}

// swap adds a mutant that makes two calls in the other order.
func (s *search) swap(first ast.Stmt, second ast.Stmt) {
	n, ok := second.(*ast.ExprStmt)
	if !ok || s.tooLong(first) || s.tooLong(second) {
		return
	}
	if call, ok := n.X.(*ast.CallExpr); !ok || s.quietCall(call) || s.text(first) == s.text(second) {
		return
	}
	other := s.text(second) + "; " + s.text(first)
	s.addSpan(SwapStatements, first.Pos(), second.End(), "if "+switched+" { "+other+" } else { ", " }",
		s.text(first)+"; "+s.text(second)+" => "+other)
}

// arguments are a node with two arguments of a call in the other order. Those
// of different types do not compile, and are dropped later.
func (s *search) arguments(n ast.Node) []variant {
	var changes []variant
	ast.Inspect(n, func(inner ast.Node) bool {
		call, ok := inner.(*ast.CallExpr)
		if !ok {
			return true
		}
		if s.quietCall(call) || message.MatchString(s.text(call.Fun)) {
			return false
		}
		for i := 1; i < len(call.Args); i++ {
			a, b := call.Args[i-1], call.Args[i]
			if s.text(a) == s.text(b) || literal(a) != literal(b) {
				continue
			}
			between := s.src[s.offset(a.End()):s.offset(b.Pos())]
			changes = append(changes, s.with(n, a.Pos(), b.End(), s.text(b)+between+s.text(a)))
		}
		return true
	})
	return changes
}

func literal(n ast.Expr) bool {
	_, ok := n.(*ast.BasicLit)
	return ok
}
