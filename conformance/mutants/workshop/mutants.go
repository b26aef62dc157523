package workshop

import (
	"context"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"strings"

	"snowglobe.test/conformance/mutants/mutation"
)

// source is upstream's source with its mutants.
type source struct {
	upstream *upstream
	files    map[string]*mutation.File // by path on disk
	mutants  []mutation.Mutant
}

// find finds the mutants of what the program is built from in the module at root.
func find(ctx context.Context, root string) (*source, error) {
	systems, err := mutation.OfChain()
	if err != nil {
		return nil, err
	}
	hand, err := mutation.WrittenByHand()
	if err != nil {
		return nil, err
	}
	u, err := readUpstream(ctx, root)
	if err != nil {
		return nil, err
	}
	s := &source{upstream: u, files: map[string]*mutation.File{}}
	known := imports(u)
	var files []*mutation.File
	for _, p := range u.packages {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		pkg := &mutation.Package{Path: p.ImportPath, Files: map[string]*mutation.File{}}
		found := 0
		for _, name := range p.GoFiles {
			path := filepath.Join(p.Dir, name)
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			f, err := mutation.Parse(strings.TrimPrefix(p.ImportPath, "k8s.io/")+"/"+name, text, systems, hand)
			if err != nil {
				return nil, err
			}
			pkg.Files[path], s.files[path] = f, f
			files = append(files, f)
			found += len(f.Mutants)
		}
		if found == 0 {
			continue
		}
		if err := pkg.Check(known, "go"+u.version[p.Module.Path]); err != nil {
			return nil, err
		}
	}
	s.mutants = mutation.All(files)
	return s, present(hand, s.mutants)
}

// present returns an error that names the handwritten mutants that are not among those made.
func present(hand []mutation.Handwritten, made []mutation.Mutant) error {
	have := map[string]bool{}
	for _, m := range made {
		have[m.ID] = true
	}
	var problems []error
	for _, h := range hand {
		if !have[h.ID()] {
			problems = append(problems, fmt.Errorf("mutant %s by hand: its file is not part of the program, or it "+
				"does not compile", h.Name))
		}
	}
	return errors.Join(problems...)
}

// importedFrom imports packages from the compiler's export data, and the package that switches
// mutants, which is not compiled yet, from memory.
type importedFrom struct {
	compiled types.Importer
	mutant   *types.Package
}

// Import implements types.Importer.
func (i importedFrom) Import(path string) (*types.Package, error) {
	if path == mutation.SwitchPackage {
		return i.mutant, nil
	}
	return i.compiled.Import(path)
}

func imports(u *upstream) types.Importer {
	open := func(path string) (io.ReadCloser, error) {
		if u.exports[path] == "" {
			return nil, fmt.Errorf("package %s was not compiled", path)
		}
		return os.Open(u.exports[path])
	}
	return importedFrom{importer.ForCompiler(token.NewFileSet(), "gc", open), mutation.Switch()}
}
