package checkers_test

import (
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"snowglobe.test/internal/sample"
	"snowglobe.test/scenarios/checkers"
)

var worlds = flag.Uint64("worlds", 100, "how many worlds TestGoodHistories makes")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestGoodHistories accepts what a world that is right gives, however it is recorded.
func TestGoodHistories(t *testing.T) {
	if sample.All() {
		*worlds = max(*worlds, 1000)
	}
	judged := map[string]int{}
	for seed := range *worlds {
		for name, h := range variants(newWorld(seed).run(250)) {
			report := checkers.Check(t.Context(), h)
			require.Equal(t, checkers.Holds, report.Verdict(), "seed %d, %s:\n%s", seed, name, report)
			for _, r := range report.Results {
				judged[r.Check] += r.Judged
			}
		}
	}
	for _, c := range checkers.All() {
		require.Greater(t, judged[c.Name()], int(*worlds), "%s has not had much to judge", c.Name())
	}
	t.Log(judged)
}

// largeHistory is a history of at least n operations, on few objects.
func largeHistory(n int) *checkers.History {
	w := newWorld(1)
	for len(w.history.Operations) < n {
		w.move()
	}
	return w.run(0)
}

// BenchmarkCheck judges 10,000 operations, as different recorders would have them.
func BenchmarkCheck(b *testing.B) {
	all := variants(largeHistory(10_000))
	for _, name := range []string{"closed", "complete", "open", "both"} {
		h := all[name]
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if report := checkers.Check(b.Context(), h); report.Verdict() != checkers.Holds {
					b.Fatal(report)
				}
			}
		})
		for _, c := range checkers.All() {
			b.Run(name+"/"+c.Name(), func(b *testing.B) {
				for b.Loop() {
					_ = c.Check(b.Context(), h)
				}
			})
		}
	}
}

// TestLargeHistory judges 10,000 operations on few objects, a twelfth of them without
// an answer, to the end: no search gives up.
func TestLargeHistory(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	h := largeHistory(10_000)
	for name, h := range variants(h) {
		start := time.Now()
		report := checkers.Check(t.Context(), h)
		t.Logf("%s: %d operations, %d watches in %v", name, len(h.Operations), len(h.Watches), time.Since(start))
		assert.Equal(t, checkers.Holds, report.Verdict(), "%s: %s", name, report)
	}
}
