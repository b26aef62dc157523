package fault

import (
	"cmp"
	"fmt"
	"slices"
)

// How many names suggest offers, and how many it lists if none is near.
const (
	maxNearest = 3
	maxListed  = 24
)

// suggest is the end of a message about an unknown name: the nearest known
// ones, or all of them if none is near.
func suggest(name string, known []string) string {
	if near := nearest(name, known); len(near) > 0 {
		return fmt.Sprintf("; did you mean %s?", either(near))
	}
	if len(known) > maxListed {
		return fmt.Sprintf("; there are %d, and none is like it", len(known))
	}
	return "; there is " + either(known)
}

// nearest returns the known names that are like a name, the likest first, and
// none that is much less like it than another.
func nearest(name string, known []string) []string {
	limit := 1 + len(name)/4
	best := limit
	distances := map[string]int{}
	var near []string
	for _, k := range known {
		if d := distance(name, k, limit); d <= limit && distances[k] == 0 {
			distances[k] = d
			best = min(best, d)
			near = append(near, k)
		}
	}
	near = slices.DeleteFunc(near, func(k string) bool { return distances[k] > best+1 })
	slices.SortFunc(near, func(a, b string) int {
		return cmp.Or(cmp.Compare(distances[a], distances[b]), cmp.Compare(a, b))
	})
	return near[:min(len(near), maxNearest)]
}

// distance is how many bytes must be put in, taken out or replaced to turn one
// text into the other; above the limit, any number above it.
func distance(a, b string, limit int) int {
	if d := max(len(a), len(b)) - min(len(a), len(b)); d > limit {
		return d
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
