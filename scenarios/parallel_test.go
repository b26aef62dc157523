package scenarios

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"snowglobe.test/scenarios/script"
)

// TestRunAll runs five scripts, up to two at a time, the fourth of which must run alone.
func TestRunAll(t *testing.T) {
	seconds := map[string]int{"a": 3, "b": 1, "c": 1, "alone": 2, "d": 1}
	scripts := []script.Script{
		{Name: "a"}, {Name: "b"}, {Name: "c"}, script.Parse("alone.txtar", []byte("start -- --feature-gates=X=true\n")), {Name: "d"},
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		run := func(_ context.Context, one script.Script) Result {
			start := time.Since(began)
			time.Sleep(time.Duration(seconds[one.Name]) * time.Second)
			return Result{Script: one, Scripted: start}
		}
		var names []string
		var starts []int
		for result := range runAll(t.Context(), scripts, 2, run) {
			names, starts = append(names, result.Script.Name), append(starts, int(result.Scripted.Seconds()))
		}
		assert.Equal(t, []string{"a", "b", "c", "alone", "d"}, names, "the scripts with results")
		assert.Equal(t, []int{0, 0, 1, 3, 5}, starts, "when scripts started, in seconds")
	})
}

// TestRunAllEnds stops after the first result: the script that runs ends, and the next
// never starts.
func TestRunAllEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var started []string
		run := func(ctx context.Context, one script.Script) Result {
			started = append(started, one.Name)
			if one.Name == "hour" {
				select {
				case <-ctx.Done():
				case <-time.After(time.Hour):
				}
			}
			return Result{Script: one}
		}
		for range runAll(t.Context(), []script.Script{{Name: "first"}, {Name: "hour"}, {Name: "next"}}, 1, run) {
			synctest.Wait() // until the second runs
			break
		}
		assert.True(t, slices.Equal(started, []string{"first", "hour"}) && time.Since(began) == 0, "%v were started, and it ended after %s", started, time.Since(began))
	})
}
