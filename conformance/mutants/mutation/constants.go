package mutation

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

// message matches the calls that make text for people, which is no promise.
var message = regexp.MustCompile(`(?i)errorf$|errors\.new$|sprintf$|printf$|aggregate|^len$|^make$|^append$`)

// variant is the source of a node in which a part is changed.
type variant struct {
	text   string
	change string // for people
}

// with is a node with something else in a part of it.
func (s *search) with(n ast.Node, start, end token.Pos, text string) variant {
	from, to := s.offset(start), s.offset(end)
	return variant{
		text:   s.src[s.offset(n.Pos()):from] + text + s.src[to:s.offset(n.End())],
		change: s.src[from:to] + " => " + text + " in: " + s.text(n),
	}
}

// constants are a node with one constant changed, each of them in turn.
func (s *search) constants(n ast.Node) []variant {
	var changes []variant
	ast.Inspect(n, func(inner ast.Node) bool {
		switch c := inner.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CallExpr:
			return !s.quietCall(c) && !message.MatchString(s.text(c.Fun))
		case *ast.IndexExpr, *ast.SliceExpr: // off by one they panic
			return false
		case *ast.SelectorExpr:
			if of, ok := c.X.(*ast.Ident); ok && of.Name == "http" && strings.HasPrefix(c.Sel.Name, "Status") &&
				c.Sel.Name != "StatusText" {
				changes = append(changes, s.with(n, c.Pos(), c.End(), otherStatus(c.Sel.Name)))
			}
			return false
		case *ast.Ident:
			if other := map[string]string{"true": "false", "false": "true"}[c.Name]; other != "" {
				changes = append(changes, s.with(n, c.Pos(), c.End(), other))
			}
		case *ast.BasicLit:
			if other := otherLiteral(c); other != "" {
				changes = append(changes, s.with(n, c.Pos(), c.End(), other))
			}
		}
		return true
	})
	return changes
}

func otherStatus(name string) string {
	if name == "StatusInternalServerError" {
		return "http.StatusBadRequest"
	}
	return "http.StatusInternalServerError"
}

// otherLiteral is another number or name, empty if a literal is text for people.
func otherLiteral(c *ast.BasicLit) string {
	switch c.Kind {
	case token.INT:
		if n, err := strconv.ParseInt(c.Value, 0, 32); err == nil {
			return strconv.FormatInt(n+1, 10)
		}
	case token.STRING:
		text, err := strconv.Unquote(c.Value)
		if err == nil && text != "" && !strings.ContainsAny(text, " %\n") {
			return strconv.Quote(text + "x")
		}
	}
	return ""
}
