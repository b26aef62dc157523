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
	return draw(mutants, seed, n, func(m mutation.Mutant) string { return m.ID })
}

// DrawJobs is Draw for jobs.
func DrawJobs(jobs []Job, seed uint64, n int) []Job {
	return draw(jobs, seed, n, func(j Job) string { return j.Mutant.ID })
}

func draw[M any](all []M, seed uint64, n int, id func(M) string) []M {
	place := func(m M) string {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", seed, id(m)))
		return string(sum[:])
	}
	drawn := slices.Clone(all)
	slices.SortFunc(drawn, func(a, b M) int { return cmp.Compare(place(a), place(b)) })
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
