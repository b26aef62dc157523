package checkers_test

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"snowglobe.test/scenarios/checkers"
)

var worlds = flag.Uint64("worlds", 1000, "how many worlds TestGoodHistories makes")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestGoodHistories accepts what a world that is right gives, however it is recorded.
func TestGoodHistories(t *testing.T) {
	if testing.Short() {
		*worlds = 100
	}
	judged := map[string]int{}
	for seed := range *worlds {
		for name, h := range variants(newWorld(seed).run(250)) {
			report := checkers.Check(t.Context(), h)
			if report.Verdict() != checkers.Holds {
				t.Fatalf("seed %d, %s:\n%s", seed, name, report)
			}
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
