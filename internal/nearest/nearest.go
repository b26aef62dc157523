// Package nearest owns the end of errors about unknown names: which of the known
// ones may have been meant. It never knows what the names are of.
package nearest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// most is how many names an error offers.
const most = 3

// shortest is the length up to which one more letter makes a name another one.
const shortest = 4

// DidYouMean is "; did you mean a or b?" with the known names that are nearest,
// or nothing if none is near.
func DidYouMean(name string, known []string) string {
	near := Names(name, known)
	if len(near) == 0 {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", Either(near))
}

// Names returns the known names that differ from name by a few letters, or of
// which it is a part, the nearest first, and none that is much farther than
// another. Case does not count.
func Names(name string, known []string) []string {
	limit := 1 + len(name)/4
	best := limit
	distances := map[string]int{}
	var near []string
	for _, k := range known {
		d := likeness(strings.ToLower(name), strings.ToLower(k), limit)
		if _, seen := distances[k]; seen || d > limit {
			continue
		}
		distances[k] = d
		best = min(best, d)
		near = append(near, k)
	}
	if len(name) > shortest {
		best++
	}
	near = slices.DeleteFunc(near, func(k string) bool { return distances[k] > best })
	slices.SortFunc(near, func(a, b string) int {
		return cmp.Or(cmp.Compare(distances[a], distances[b]), cmp.Compare(a, b))
	})
	return near[:min(len(near), most)]
}

// likeness is the distance, or 2 if the name is a part of the known one and that
// is less: who wrote only a part is not far off.
func likeness(name, known string, limit int) int {
	d := distance(name, known, limit)
	if len(name) > 2 && strings.Contains(known, name) {
		d = min(d, 2)
	}
	return d
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

// Either lists alternatives for people, such as "a, b or c".
func Either[S ~string](of []S) string {
	words := make([]string, len(of))
	for i, s := range of {
		words[i] = string(s)
	}
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return fmt.Sprintf("%s or %s", strings.Join(words[:last], ", "), words[last])
}
