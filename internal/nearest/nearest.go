// Package nearest owns the "did you mean" of errors about unknown names: which known
// names come close. It never knows what the names stand for.
package nearest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// maxNames is how many names an error suggests.
const maxNames = 3

// shortName is the length up to which a name is only as good as the best match: one
// more different letter makes it another word.
const shortName = 4

// DidYouMean returns "; did you mean a or b?" with the nearest known names, if any.
func DidYouMean(name string, known []string) string {
	near := Names(name, known)
	if len(near) == 0 {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", Either(near))
}

// Names returns the known names that differ from name by a few letters or contain it,
// nearest first, without those much farther away than the nearest. It ignores case.
func Names(name string, known []string) []string {
	limit := 1 + len(name)/4
	best := limit
	distances := map[string]int{}
	var near []string
	for _, k := range known {
		d := nearness(strings.ToLower(name), strings.ToLower(k))
		if _, seen := distances[k]; seen || d > limit {
			continue
		}
		distances[k] = d
		best = min(best, d)
		near = append(near, k)
	}
	if len(name) > shortName {
		best++
	}
	near = slices.DeleteFunc(near, func(k string) bool { return distances[k] > best })
	slices.SortFunc(near, func(a, b string) int {
		return cmp.Or(cmp.Compare(distances[a], distances[b]), cmp.Compare(a, b))
	})
	return near[:min(len(near), maxNames)]
}

// nearness is the distance, but at most 2 for a part of a known name: a near miss.
func nearness(name, known string) int {
	d := levenshtein.ComputeDistance(name, known)
	if len(name) > 2 && strings.Contains(known, name) {
		d = min(d, 2)
	}
	return d
}

// Either lists alternatives for people, for example "a, b or c".
func Either[S ~string](of []S) string {
	words := Texts(of)
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return fmt.Sprintf("%s or %s", strings.Join(words[:last], ", "), words[last])
}

// Texts are names of any string type as plain ones, for a list of them.
func Texts[S ~string](of []S) []string {
	all := make([]string, len(of))
	for i, s := range of {
		all[i] = string(s)
	}
	return all
}
