package trial

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"

	"snowglobe.test/conformance/mutants/mutation"
)

// Draw takes n mutants by a seed. Each has its own place in the order of a seed, so that new
// mutants do not change what is drawn of the others.
func Draw(mutants []mutation.Mutant, seed uint64, n int) []mutation.Mutant {
	place := func(m mutation.Mutant) string {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", seed, m.ID))
		return string(sum[:])
	}
	drawn := slices.Clone(mutants)
	slices.SortFunc(drawn, func(a, b mutation.Mutant) int { return cmp.Compare(place(a), place(b)) })
	return drawn[:min(n, len(drawn))]
}

// DrawEach takes n mutants of each system.
func DrawEach(mutants []mutation.Mutant, seed uint64, n int) []mutation.Mutant {
	left := map[string]int{}
	var drawn []mutation.Mutant
	for _, m := range Draw(mutants, seed, len(mutants)) {
		if left[m.System] < n {
			left[m.System]++
			drawn = append(drawn, m)
		}
	}
	return drawn
}
