package scenarios

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestRunAll runs five scripts, up to two at a time, the fourth of which must run alone.
func TestRunAll(t *testing.T) {
	seconds := map[string]int{"a": 3, "b": 1, "c": 1, "alone": 2, "d": 1}
	scripts := []Script{
		{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "alone", text: []byte("start --feature-gates=X=true\n")}, {Name: "d"},
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		run := func(_ context.Context, script Script) Result {
			start := time.Since(began)
			time.Sleep(time.Duration(seconds[script.Name]) * time.Second)
			return Result{Script: script, Scripted: start}
		}
		var names []string
		var starts []int
		for result := range runAll(t.Context(), scripts, 2, run) {
			names, starts = append(names, result.Script.Name), append(starts, int(result.Scripted.Seconds()))
		}
		if want := []string{"a", "b", "c", "alone", "d"}; !slices.Equal(names, want) {
			t.Errorf("results of %v, want %v", names, want)
		}
		if want := []int{0, 0, 1, 3, 5}; !slices.Equal(starts, want) {
			t.Errorf("scripts started after %v s, want %v", starts, want)
		}
	})
}

// TestRunAllEnds stops after the first result: the script that runs ends, and the next
// never starts.
func TestRunAllEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var started []string
		run := func(ctx context.Context, script Script) Result {
			started = append(started, script.Name)
			if script.Name == "hour" {
				select {
				case <-ctx.Done():
				case <-time.After(time.Hour):
				}
			}
			return Result{Script: script}
		}
		for range runAll(t.Context(), []Script{{Name: "first"}, {Name: "hour"}, {Name: "next"}}, 1, run) {
			synctest.Wait() // until the second runs
			break
		}
		if !slices.Equal(started, []string{"first", "hour"}) || time.Since(began) > 0 {
			t.Errorf("%v were started, and it ended after %s", started, time.Since(began))
		}
	})
}
