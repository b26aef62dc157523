package sim

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// The variables of the environment that name the file which a run under surw writes, and the one it reads.
const (
	countVariable  = "SNOWGLOBE_COUNT"
	countsVariable = "SNOWGLOBE_COUNTS"
)

// Counts is a file for what surw must know of a test: how many choice points each of its goroutines passes. Whoever
// runs a test under surw runs it twice with the same seed, First and Then.
type Counts string

// First are the variables for the run that counts. In it any goroutine is as probable as any other at each point.
func (c Counts) First() []string { return []string{countVariable + "=" + string(c)} }

// Then are the variables for the run after it. There are none if the first could not tell anything.
func (c Counts) Then() ([]string, error) {
	text, err := os.ReadFile(string(c))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("counts of surw: %w", err)
	}
	counts := make([]count, len(text)/binary.Size(count{}))
	if _, err := binary.Decode(text, binary.NativeEndian, counts); err != nil {
		return nil, fmt.Errorf("counts of surw: %w", err)
	}
	var all bytes.Buffer
	if err := binary.Write(&all, binary.NativeEndian, remaining(counts)); err != nil {
		return nil, fmt.Errorf("counts of surw: %w", err)
	}
	if err := os.WriteFile(string(c), all.Bytes(), 0o600); err != nil {
		return nil, fmt.Errorf("counts of surw: %w", err)
	}
	return []string{countsVariable + "=" + string(c)}, nil
}

// count is simCount of overlay/surw.go.txt.
type count struct{ Path, Parent, Points uint64 }

// remaining adds to the points of each goroutine those of the goroutines that it starts.
func remaining(counts []count) []count {
	children := map[uint64][]int{}
	for i, c := range counts {
		children[c.Parent] = append(children[c.Parent], i)
	}
	var add func(i int) uint64
	add = func(i int) uint64 {
		for _, child := range children[counts[i].Path] {
			counts[i].Points += add(child)
		}
		return counts[i].Points
	}
	for _, i := range children[0] {
		add(i)
	}
	return counts
}
