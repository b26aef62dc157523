package mutation

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// A File is a file of upstream's source with its mutants.
type File struct {
	// Name is the file's place without "k8s.io/", as in "apiserver/pkg/audit/request.go".
	Name    string
	Mutants []Mutant

	src       []byte
	clauseEnd int // where the package clause ends
}

// candidate is a mutant without an ID.
type candidate struct {
	function string
	operator Operator
	line     int
	change   string
	edit     edit
}

// Parse finds the mutants of a file, of which it keeps those that belong to a system. hand are
// the mutants that people wrote; those for other files are ignored.
func Parse(file string, src []byte, systems Systems, hand []Handwritten) (*File, error) {
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, src, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return nil, fmt.Errorf("find mutants: %w", err)
	}
	f := &File{Name: file, src: src, clauseEnd: fset.Position(parsed.Name.End()).Offset}
	s := &search{fset: fset, src: string(src)}
	if !ast.IsGenerated(parsed) {
		for _, d := range parsed.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				s.function = functionName(fn)
				s.walk(fn.Body)
			}
		}
	}
	for _, m := range name(file, s.found) {
		if m.System = systems.Of(m.ID); m.System != "" {
			f.Mutants = append(f.Mutants, m)
		}
	}
	for _, h := range hand {
		if h.File == file {
			m, err := h.in(fset, parsed, string(src))
			if err != nil {
				return nil, err
			}
			f.Mutants = append(f.Mutants, m)
		}
	}
	return f, nil
}

// functionName is the name of a function with its receiver's type, as in "Store.Update".
func functionName(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return fn.Name.Name
	}
	of, _, _ := strings.Cut(strings.Trim(types.ExprString(fn.Recv.List[0].Type), "*()"), "[")
	return of + "." + fn.Name.Name
}

// Text is the file with its mutants; number is the switch of each.
func (f *File) Text(number func(id string) int) string {
	return join(splice(f.src, f.clauseEnd, f.Mutants, func(i int) int { return number(f.Mutants[i].ID) }))
}

// drop removes mutants by their index.
func (f *File) drop(bad map[int]bool) {
	kept := f.Mutants[:0:0]
	for i, m := range f.Mutants {
		if !bad[i] {
			kept = append(kept, m)
		}
	}
	f.Mutants = kept
}

// blame returns the mutants at fault for an error at an offset of the file's text: the one
// whose text it is in, or else those around it, or all of them.
func (f *File) blame(offset int) map[int]bool {
	pieces := splice(f.src, f.clauseEnd, f.Mutants, func(int) int { return 0 })
	end, original := 0, 0
	for _, p := range pieces {
		end += len(p.text)
		if offset < end && p.mutant >= 0 {
			return map[int]bool{p.mutant: true}
		}
		if offset < end {
			original += len(p.text) - (end - offset)
			break
		}
		if p.mutant < 0 && !strings.HasPrefix(p.text, "; import mutant ") {
			original += len(p.text)
		}
	}
	around := map[int]bool{}
	for i, m := range f.Mutants {
		if m.edit.start <= original && original <= m.edit.end {
			around[i] = true
		}
	}
	if len(around) == 0 {
		for i := range f.Mutants {
			around[i] = true
		}
	}
	return around
}

// All returns the mutants of files by ID.
func All(files []*File) []Mutant {
	var all []Mutant
	for _, f := range files {
		all = append(all, f.Mutants...)
	}
	slices.SortFunc(all, func(a, b Mutant) int { return strings.Compare(a.ID, b.ID) })
	return all
}
