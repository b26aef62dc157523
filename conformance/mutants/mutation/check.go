package mutation

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
)

// Package is a package of upstream whose files get mutants.
type Package struct {
	Path string
	// Files are all files of the package that are built, by their path on disk.
	Files map[string]*File
}

// Check drops the mutants that do not compile. The importer knows what the package imports,
// and SwitchPackage.
func (p *Package) Check(importer types.Importer, goVersion string) error {
	for {
		faults, other := p.compile(importer, goVersion)
		if len(faults) == 0 {
			return other
		}
		dropped := 0
		for f, bad := range faults {
			dropped += len(bad)
			f.drop(bad)
		}
		if dropped == 0 {
			return errors.Join(fmt.Errorf("package %s does not compile without mutants either", p.Path), other)
		}
	}
}

// compile returns the mutants at fault for what does not compile.
func (p *Package) compile(importer types.Importer, goVersion string) (faults map[*File]map[int]bool, other error) {
	fset := token.NewFileSet()
	faults = map[*File]map[int]bool{}
	var parsed []*ast.File
	blame := func(at token.Position, err error) {
		f := p.Files[at.Filename]
		if f == nil || len(f.Mutants) == 0 {
			other = errors.Join(other, err)
			return
		}
		if faults[f] == nil {
			faults[f] = map[int]bool{}
		}
		for i := range f.blame(at.Offset) {
			faults[f][i] = true
		}
	}
	for path, f := range p.Files {
		// All numbers are as long as 0, so that offsets are those that blame knows.
		file, err := parser.ParseFile(fset, path, f.Text(func(string) int { return 0 }), parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
		parsed = append(parsed, file)
	}
	config := types.Config{Importer: importer, GoVersion: goVersion, FakeImportC: true, Error: func(err error) {
		if problem, ok := errors.AsType[types.Error](err); ok {
			blame(fset.Position(problem.Pos), err)
		}
	}}
	_, err := config.Check(p.Path, fset, parsed, nil)
	if err != nil && len(faults) == 0 {
		return nil, errors.Join(err, other)
	}
	return faults, other
}

// Switch is SwitchPackage as the type checker knows it.
func Switch() *types.Package {
	pkg := types.NewPackage(SwitchPackage, "mutant")
	of := func(kind types.BasicKind) *types.Tuple {
		return types.NewTuple(types.NewVar(token.NoPos, nil, "", types.Typ[kind]))
	}
	on := types.NewSignatureType(nil, nil, nil, of(types.Int), of(types.Bool), false)
	pkg.Scope().Insert(types.NewFunc(token.NoPos, pkg, "On", on))
	pkg.MarkComplete()
	return pkg
}
