package scenarios

import (
	"fmt"
	"slices"
	"strings"
)

// maxSuggestions bounds how many names an error offers.
const maxSuggestions = 3

// didYouMean is the end of an error about an unknown name: the known names that
// are nearest, or nothing if none is near.
func didYouMean(name string, known []string) string {
	near := nearest(name, known)
	if len(near) == 0 {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", strings.Join(near, " or "))
}

// nearest returns the known names that differ from name by a few letters, and
// those of which it is a part, nearest first.
func nearest(name string, known []string) []string {
	type candidate struct {
		name     string
		distance int
	}
	var near []candidate
	for _, k := range known {
		d := distance(strings.ToLower(name), strings.ToLower(k))
		// A name of which only a part was written is a near miss too.
		if len(name) >= 3 && strings.Contains(strings.ToLower(k), strings.ToLower(name)) {
			d = min(d, 2)
		}
		if d <= max(1, len(name)/3) {
			near = append(near, candidate{k, d})
		}
	}
	slices.SortStableFunc(near, func(a, b candidate) int {
		if a.distance != b.distance {
			return a.distance - b.distance
		}
		return strings.Compare(a.name, b.name)
	})
	names := make([]string, 0, maxSuggestions)
	for _, c := range near[:min(len(near), maxSuggestions)] {
		names = append(names, c.name)
	}
	return names
}

// distance is how many letters must be put in, left out or replaced to make one
// word of the other.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
