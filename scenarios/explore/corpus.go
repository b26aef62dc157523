package explore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/internal/diskerr"
	"snowglobe.test/internal/outfile"
)

// Corpus is a folder that keeps what was found, in plain files. Several shards may
// share it, or have one each: to merge them, copy their files into one folder.
//
//	failures/*.txtar     a script for each failure, which repeats it
//	kept/*.faults        the plans, with their seeds, that showed a new interleaving
//	interleavings/*.txt  the interleavings seen, a file for each shard
//	reports/*.json       what each shard did
type Corpus struct{ folder string }

// The parts of a corpus.
const (
	failuresFolder      = "failures"
	keptFolder          = "kept"
	interleavingsFolder = "interleavings"
	reportsFolder       = "reports"
)

// OpenCorpus makes a corpus of a folder, which it creates if there is none.
func OpenCorpus(folder string) (*Corpus, error) {
	for _, part := range []string{failuresFolder, keptFolder, interleavingsFolder, reportsFolder} {
		if err := os.MkdirAll(filepath.Join(folder, part), 0o755); err != nil {
			return nil, fmt.Errorf("corpus: %w", diskerr.OrSame(folder, err))
		}
	}
	return &Corpus{folder}, nil
}

// kept returns the cases that were kept, in the order of the names of their files.
func (c *Corpus) kept() ([]Case, error) {
	files, err := filepath.Glob(filepath.Join(c.folder, keptFolder, "*.faults"))
	if err != nil {
		return nil, fmt.Errorf("corpus: %w", err)
	}
	slices.Sort(files)
	cases := make([]Case, 0, len(files))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("corpus: %w", err)
		}
		one, err := parseKept(file, string(text))
		if err != nil {
			return nil, fmt.Errorf("corpus: %w", err)
		}
		cases = append(cases, one)
	}
	return cases, nil
}

const seedLine = "# seed "

func parseKept(file, text string) (Case, error) {
	line, plan, _ := strings.Cut(text, "\n")
	number, found := strings.CutPrefix(line, seedLine)
	seed, err := strconv.ParseUint(number, 10, 64)
	if !found || err != nil {
		return Case{}, fmt.Errorf("%s:1: the first line is %q and a number, not %q", file, strings.TrimSpace(seedLine), line)
	}
	rules, err := fault.ParsePlan(file, plan, nil)
	return Case{Seed: seed, Plan: rules}, err
}

// keep writes a case that showed a new interleaving: its plan, below a comment with its seed.
func (c *Corpus) keep(one Case) error {
	text := fmt.Sprintf("%s%d\n%s", seedLine, one.Seed, one.Plan)
	name := fmt.Sprintf("%016x.faults", hash(text))
	return c.write(filepath.Join(keptFolder, name), []byte(text))
}

// interleavings returns all interleavings seen, by any shard.
func (c *Corpus) interleavings() (map[uint64]bool, error) {
	seen := map[uint64]bool{}
	files, err := filepath.Glob(filepath.Join(c.folder, interleavingsFolder, "*.txt"))
	if err != nil {
		return nil, fmt.Errorf("corpus: %w", err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("corpus: %w", err)
		}
		number := 0
		for line := range strings.Lines(string(text)) {
			number++
			line = strings.TrimSpace(line)
			interleaving, err := strconv.ParseUint(line, 16, 64)
			if err != nil {
				return nil, fmt.Errorf("corpus: %s:%d: not a number in hexadecimal: %q", name, number, line)
			}
			seen[interleaving] = true
		}
	}
	return seen, nil
}

// writeInterleavings writes the interleavings that a shard has seen.
func (c *Corpus) writeInterleavings(shard Shard, seen []uint64) error {
	slices.Sort(seen)
	var text strings.Builder
	for _, interleaving := range seen {
		fmt.Fprintf(&text, "%016x\n", interleaving)
	}
	return c.write(filepath.Join(interleavingsFolder, shard.file()+".txt"), []byte(text.String()))
}

// writeReport writes what a shard did.
func (c *Corpus) writeReport(shard Shard, report Report) error {
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return fmt.Errorf("corpus: %w", err)
	}
	return c.write(filepath.Join(reportsFolder, shard.file()+".json"), append(text, '\n'))
}

// writeFailure writes the script of a failure and returns its file. There is one for
// each failure: if two shards find it, the smaller script stays.
func (c *Corpus) writeFailure(found *Found) (file string, err error) {
	name := filepath.Join(failuresFolder, slug(found.Failure)+".txtar")
	file = filepath.Join(c.folder, name)
	before, err := os.ReadFile(file)
	switch {
	case err == nil && len(before) <= len(found.replay):
		return file, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("corpus: %w", err)
	}
	return file, c.write(name, []byte(found.replay))
}

// write replaces a file atomically, because other shards may be reading it.
func (c *Corpus) write(name string, text []byte) error {
	if err := outfile.Replace(filepath.Join(c.folder, name), bytes.NewReader(text), 0o644); err != nil {
		return fmt.Errorf("corpus: %w", err)
	}
	return nil
}

// Shard is one of several processes that share the runs: the Index-th of Count, from 1.
type Shard struct {
	Index int `json:"index"`
	Count int `json:"count"`
}

// ParseShard reads a shard as i/n, such as 1/4.
func ParseShard(text string) (Shard, error) {
	index, count, _ := strings.Cut(text, "/")
	i, errIndex := strconv.Atoi(index)
	n, errCount := strconv.Atoi(count)
	if errors.Join(errIndex, errCount) != nil || i < 1 || i > n {
		return Shard{}, fmt.Errorf("a shard is i/n, from 1/n to n/n, not %q", text)
	}
	return Shard{i, n}, nil
}

// has reports whether a run, counted from 1, is the shard's.
func (s Shard) has(run int) bool { return (run-1)%s.Count == s.Index-1 }

// of returns how many of the runs are the shard's.
func (s Shard) of(runs int) int { return (runs - s.Index + s.Count) / s.Count }

func (s Shard) file() string { return fmt.Sprintf("shard-%d-of-%d", s.Index, s.Count) }
