package workshop

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"snowglobe.test/conformance/mutants/mutation"
	"snowglobe.test/internal/gobuild"
)

// The program's own source: its main package, and the package that knows which mutants are on.
var (
	//go:embed source/main.go.txt
	mainSource []byte
	//go:embed source/mutant.go.txt
	mutantSource []byte
)

// Built is the program with all mutants in it.
type Built struct {
	// Program is the path of the executable.
	Program string `json:"program"`
	// Release of upstream.
	Release string `json:"release"`
	// Sum changes when the program does.
	Sum string `json:"sum"`
	// Mutants are in the order of their IDs.
	Mutants []mutation.Mutant `json:"mutants"`
}

// Build builds the program, and tells progress how far it is. Only what has changed since the
// last time is built.
func (w *Workshop) Build(ctx context.Context, progress io.Writer) (Built, error) {
	fmt.Fprintln(progress, "mutants: looking for mutants in upstream's source")
	s, err := find(ctx, w.root)
	if err != nil {
		return Built{}, err
	}
	before, err := w.listed()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Built{}, err
	}
	mutation.Number(s.mutants, before.Mutants)
	want, err := s.write(w.root, w.dir)
	if err != nil {
		return Built{}, fmt.Errorf("write source with mutants: %w", err)
	}
	if err := want.replace(w.dir); err != nil {
		return Built{}, fmt.Errorf("write source with mutants: %w", err)
	}
	built := Built{Program: w.program(), Release: s.upstream.release, Mutants: s.mutants}
	build := exec.CommandContext(ctx, "go", "build", "-mod=mod", "-o", built.Program, ".")
	build.Dir = filepath.Join(w.dir, "program")
	build.Env = append(os.Environ(), "GOWORK=off")
	if err := gobuild.Build(build, fmt.Sprintf("a program with %d mutants", len(s.mutants)), progress); err != nil {
		return Built{}, fmt.Errorf("build the program with mutants: %w", err)
	}
	if built.Sum, err = sum(built.Program); err != nil {
		return Built{}, err
	}
	text, err := json.Marshal(built)
	if err != nil {
		return Built{}, err
	}
	return built, os.WriteFile(w.list(), text, 0o600)
}

// Last is the program that was built last.
func (w *Workshop) Last() (Built, error) {
	built, err := w.listed()
	if err != nil {
		return Built{}, fmt.Errorf("there is no program with mutants; build it first: %w", err)
	}
	// An interrupted build leaves a program without its list.
	if now, err := sum(built.Program); err != nil || now != built.Sum {
		return Built{}, errors.Join(errors.New("the program with mutants is not the one whose mutants are listed; "+
			"build it again"), err)
	}
	return built, nil
}

// listed returns the program as the file mutants.json describes it.
func (w *Workshop) listed() (built Built, err error) {
	text, err := os.ReadFile(w.list())
	if err != nil {
		return Built{}, err
	}
	if err := json.Unmarshal(text, &built); err != nil {
		return Built{}, fmt.Errorf("%s: %w; remove it, and build the program again", w.list(), err)
	}
	return built, nil
}

// sum is a digest of a file.
func sum(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	digest := sha256.New()
	_, err = io.Copy(digest, file)
	return hex.EncodeToString(digest.Sum(nil)), err
}

// write returns the copies of upstream's modules and the program.
func (s *source) write(root, dir string) (tree, error) {
	number := map[string]int{}
	for _, m := range s.mutants {
		number[m.ID] = m.Switch
	}
	want := tree{}
	for path, from := range s.upstream.modules {
		text, err := os.ReadFile(filepath.Join(from, "go.mod"))
		if err != nil {
			return nil, err
		}
		want[filepath.Join(copied(path), "go.mod")] = text
	}
	for _, p := range s.upstream.packages {
		for _, name := range slices.Concat(p.GoFiles, p.CgoFiles, p.EmbedFiles, p.SFiles, p.HFiles) {
			path := filepath.Join(p.Dir, name)
			to := filepath.Join(copied(p.Module.Path), strings.TrimPrefix(path, p.Module.Dir))
			if f := s.files[path]; f != nil {
				want[to] = []byte(f.Text(func(id string) int { return number[id] }))
				continue
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			want[to] = text
		}
	}
	want[filepath.Join("program", "main.go")] = mainSource
	want[filepath.Join("program", "mutant", "mutant.go")] = mutantSource
	return want, s.module(root, dir, want)
}

// copied is the folder of a module's copy.
func copied(module string) string { return strings.TrimPrefix(module, "k8s.io/") }

// module writes the program's go.mod: this module's, with the copies.
func (s *source) module(root, dir string, want tree) error {
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return err
	}
	program, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		return err
	}
	if err := program.AddModuleStmt(strings.TrimSuffix(mutation.SwitchPackage, "/mutant")); err != nil {
		return err
	}
	if err := program.AddRequire(module, "v0.0.0"); err != nil {
		return err
	}
	replaced := map[string]string{snowglobe: Repository(root), module: root}
	for _, path := range slices.Sorted(maps.Keys(s.upstream.modules)) {
		replaced[path] = filepath.Join(dir, copied(path))
	}
	for _, path := range slices.Sorted(maps.Keys(replaced)) {
		if err := program.AddReplace(path, "", replaced[path], ""); err != nil {
			return err
		}
	}
	if want[filepath.Join("program", "go.mod")], err = program.Format(); err != nil {
		return err
	}
	want[filepath.Join("program", "go.sum")], err = os.ReadFile(filepath.Join(root, "go.sum"))
	return err
}
