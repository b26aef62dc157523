package search

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"snowglobe.test/envtest/sim"
	"snowglobe.test/envtest/sim/seeds"
	"snowglobe.test/internal/tempdir"
)

// testLimit is how long a run of a test may take on the wall.
const testLimit = 30 * time.Second

// MeasureTests runs each test of some packages under seeds, in a bubble. The patterns are those of go list, in the
// module that the working directory is in.
func MeasureTests(ctx context.Context, patterns []string, count int, progress io.Writer) (Report, error) {
	packages, err := testedPackages(ctx, patterns)
	if err != nil {
		return Report{}, err
	}
	folder, err := tempdir.Make("tests")
	if err != nil {
		return Report{}, err
	}
	defer func() { _ = folder.Remove() }() // what is left is for the next one
	search := sim.Search{Bubble: true, Leaks: true}.WithDefault()
	m := measurement{Options: Options{Runs: count, Progress: progress}}
	tests := Tests{Go: runtime.Version(), Strategy: search.Strategy, Seeds: count}
	for i, of := range packages {
		path := filepath.Join(folder.Path(), strconv.Itoa(i)+".test")
		binary := program{path: path, folder: of.folder, limit: testLimit}
		if err := buildTests(ctx, progress, "", "-o", binary.path, of.Path); err != nil {
			return Report{}, err
		}
		if err := m.tests(ctx, &of.Package, binary, search); err != nil {
			return Report{}, err
		}
		tests.Packages = append(tests.Packages, of.Package)
	}
	return Report{Tests: &tests}, nil
}

// testedPackage is one whose tests will run, and where they do.
type testedPackage struct {
	Package
	folder string
}

// testedPackages lists those that have tests.
func testedPackages(ctx context.Context, patterns []string) (all []testedPackage, err error) {
	const line = "{{if or .TestGoFiles .XTestGoFiles}}" +
		"{{.ImportPath}}\t{{with .Module}}{{.Path}}@{{.Version}}{{end}}\t{{.Dir}}{{end}}"
	list := exec.CommandContext(ctx, "go", append([]string{"list", "-f", line, "--"}, patterns...)...)
	out, err := list.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil, fmt.Errorf("go list: %w\n%s", err, exit.Stderr)
	}
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		if words := strings.Split(strings.TrimSpace(line), "\t"); len(words) == 3 {
			of := Package{
				Path: words[0], Module: words[1],
				NotRunnable: map[string][]string{}, Failing: map[string]map[uint64]string{},
			}
			all = append(all, testedPackage{of, words[2]})
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no package has tests: %s", strings.Join(patterns, ", "))
	}
	return all, nil
}

// tests runs each test of a package.
func (m *measurement) tests(ctx context.Context, of *Package, binary program, search sim.Search) error {
	begun := time.Now()
	list := exec.CommandContext(ctx, binary.path, "-test.list=^Test")
	list.Dir = binary.folder
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("list the tests of %s: %w", of.Path, err)
	}
	names := strings.Fields(string(out))
	of.Functions = len(names)
	if err := m.say("%s: %d tests, each under %d seeds\n", of.Path, len(names), m.Runs); err != nil {
		return err
	}
	err = m.each(ctx, names, func(ctx context.Context, name string) error {
		one := binary
		one.args = []string{"-test.run=" + sim.OnlyTest(name)}
		told, err := one.underSeeds(ctx, search, m.Runs)
		if err != nil {
			return err
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if told.notRunnable != "" {
			of.NotRunnable[told.notRunnable] = append(of.NotRunnable[told.notRunnable], name)
		}
		if told.own {
			of.Own = append(of.Own, name)
		}
		if told.leaks {
			of.Leaks = append(of.Leaks, name)
		}
		if len(told.failed) > 0 {
			of.Failing[name] = told.failed
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.Sort(of.Own)
	slices.Sort(of.Leaks)
	for _, names := range of.NotRunnable {
		slices.Sort(names)
	}
	return m.say("%s: %d of %d tests run in a bubble, %d fail by some seed (%s)\n",
		of.Path, of.InBubble(), of.Functions, len(of.Failing), time.Since(begun).Round(time.Second))
}

// told is what came of a test under some seeds.
type told struct {
	failed      map[uint64]string // verdicts
	own, leaks  bool
	notRunnable string // why it can't run in a bubble
}

// underSeeds runs a test under each of some seeds, or until it does not end, or can't run in a bubble. One that makes a
// bubble itself runs in that.
func (p program) underSeeds(ctx context.Context, search sim.Search, count int) (told, error) {
	all := told{failed: map[uint64]string{}}
	for seed := uint64(1); seed <= uint64(count); seed++ {
		verdict, said, err := p.run(ctx, search, seed)
		if err != nil {
			return told{}, err
		}
		if verdict != passed {
			all.failed[seed] = verdict
		}
		if verdict == endless {
			return all, nil
		}
		all.leaks = all.leaks || strings.Contains(said, "snowglobe: left behind, ")
		for _, reason := range seeds.NotRunnable([]byte(said)) {
			if strings.HasSuffix(reason, "run it without --bubble") && search.Bubble {
				search.Bubble, search.Leaks = false, false
				all, err := p.underSeeds(ctx, search, count)
				all.own = true
				return all, err
			}
			_, all.notRunnable, _ = strings.Cut(reason, " in a bubble: ")
			return all, nil
		}
	}
	return all, nil
}
