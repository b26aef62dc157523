package mutation

import (
	_ "embed"
	"fmt"
	"go/ast"
	"go/token"
	"strings"
)

//go:embed byhand.txt
var byHandText string

// Handwritten is a mutant written by hand: a small patch.
type Handwritten struct {
	// Name says which promise is broken, as in "put-with-another-uid".
	Name   string
	System string
	// File and Function are where; a method is named like "Store.Update".
	File, Function string
	// Old is a text that the function has exactly once, and New what stands there instead.
	Old, New string
}

// WrittenByHand are the mutants of byhand.txt.
func WrittenByHand() ([]Handwritten, error) { return ParseHandwritten(byHandText) }

// ParseHandwritten reads mutants as byhand.txt explains.
func ParseHandwritten(text string) ([]Handwritten, error) {
	var all []Handwritten
	n := 0
	for line := range strings.Lines(text) {
		n++
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || line[0] == '#':
		case line[0] == '-' && len(all) > 0:
			all[len(all)-1].Old += line[1:]
		case line[0] == '+' && len(all) > 0:
			all[len(all)-1].New += line[1:]
		case len(words) == 4:
			all = append(all, Handwritten{Name: words[0], System: words[1], File: words[2], Function: words[3]})
		default:
			return nil, fmt.Errorf("mutants by hand, line %d: want a name, a system, a file and a function, or a "+
				"line behind - or +", n)
		}
	}
	for i := range all {
		all[i].Old, all[i].New = strings.TrimSuffix(all[i].Old, "\n"), strings.TrimSuffix(all[i].New, "\n")
		if all[i].Old == "" {
			return nil, fmt.Errorf("mutants by hand: %s has no line behind -, which says what is changed", all[i].Name)
		}
	}
	return all, nil
}

// in is the mutant in its file: the function begins with the changed body, which runs instead
// of its own while the mutant is on.
func (h Handwritten) in(fset *token.FileSet, file *ast.File, src string) (Mutant, error) {

	for _, d := range file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil || functionName(fn) != h.Function {
			continue
		}
		start, end := fset.Position(fn.Body.Lbrace).Offset+1, fset.Position(fn.Body.Rbrace).Offset
		body := src[start:end]
		if n := strings.Count(body, h.Old); n != 1 {
			return Mutant{}, fmt.Errorf("mutant %s: %s has the old text %d times; give one that it has once", h.Name,
				h.Function, n)
		}
		changed := strings.Replace(body, h.Old, h.New, 1)
		if fn.Type.Results == nil {
			changed += "\nreturn\n"
		}
		at := start + strings.Index(body, h.Old)
		return Mutant{
			ID: h.ID(), System: h.System, Line: 1 + strings.Count(src[:at], "\n"),
			Change: brief(h.Old + " => " + h.New),
			edit:   edit{start: start, end: end, prefix: "if " + switched + " {" + changed + "}\n"},
		}, nil
	}
	return Mutant{}, fmt.Errorf("mutant %s: %s has no function %s", h.Name, h.File, h.Function)
}

// ID is the ID of the mutant.
func (h Handwritten) ID() string {
	return fmt.Sprintf("%s:%s:%s:%s", h.File, h.Function, ByHand, h.Name)
}
