package trial_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/conformance/mutants/mutation"
	"snowglobe.test/conformance/mutants/trial"
)

// fake is a process without a server: what a mutant does to a case is in a table.
type fake struct {
	does  map[int]map[string]string // mutant -> case, or "" for the start -> what happens
	takes time.Duration
	once  bool // it does no more when it has done so once
	ran   []string
	runs  int
}

func (f *fake) process(ctx context.Context, mutants []int, order trial.Order, tell func(trial.Line) bool) error {
	does := map[string]string{}
	for _, mutant := range mutants {
		maps.Copy(does, f.does[mutant])
	}
	f.runs++
	for _, id := range append([]string{""}, order.Cases...) {
		select {
		case <-time.After(f.takes):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		line := trial.Line{Case: id}
		if id != "" {
			line.State = trial.Passed
		}
		switch does[id] {
		case "crash":
			return errors.New("exit status 2")
		case "hang":
			<-ctx.Done()
			return context.Cause(ctx)
		case "":
		default:
			line.State = does[id]
			if f.once {
				f.does = nil
			}
		}
		f.ran = append(f.ran, id)
		if !tell(line) {
			return nil
		}
	}
	if does["end"] == "crash" {
		return errors.New("exit status 1")
	}
	return nil
}

func TestTrial(t *testing.T) {
	cases := []string{"S4/a", "S4/b", "S12/c"}
	mutant := mutation.Mutant{ID: "a.go:f:negate:1", Switch: 7, System: "S4", Change: "x => !x"}
	survived := trial.Verdict{ID: mutant.ID, System: "S4", Result: trial.Survived, Ran: 3, Of: 3, Change: mutant.Change}
	killed := func(by, how string) trial.Verdict {
		return trial.Verdict{ID: mutant.ID, System: "S4", Result: trial.Killed, By: by, How: how, Change: mutant.Change}
	}
	for name, test := range map[string]struct {
		does map[string]string
		want trial.Verdict
		ran  int
	}{
		// A mutant that changes nothing must survive: the tool would praise the cases otherwise.
		"nothing":         {nil, survived, 4},
		"failure":         {map[string]string{"S4/b": trial.Failed}, killed("S4/b", trial.ByFailure), 3 + 2},
		"skipped":         {map[string]string{"S4/b": "skipped"}, survived, 4},
		"crash":           {map[string]string{"S4/b": "crash"}, killed("S4/b", trial.ByCrash), 2 + 1},
		"gone":            {map[string]string{"S12/c": trial.NotRun, "end": "crash"}, killed("S12/c", trial.ByCrash), 4 + 2},
		"hang":            {map[string]string{"S12/c": "hang"}, killed("S12/c", trial.ByHang), 3 + 1},
		"crash at start":  {map[string]string{"": "crash"}, killed(trial.AtStart, trial.ByCrash), 0},
		"hang at start":   {map[string]string{"": "hang"}, killed(trial.AtStart, trial.ByHang), 0},
		"crash at end":    {map[string]string{"end": "crash"}, killed(trial.AtEnd, trial.ByCrash), 4},
		"fails and later": {map[string]string{"S4/a": trial.Failed, "end": "crash"}, killed("S4/a", trial.ByFailure), 2 + 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{does: map[int]map[string]string{7: test.does}, takes: time.Second}
				got, err := trial.Trial{Process: f.process, Patience: time.Minute, Limit: time.Hour}.Of(t.Context(), trial.Job{Mutant: mutant, Cases: cases})
				require.NoError(t, err)
				assert.Equal(t, []trial.Verdict{test.want}, got)
				assert.Len(t, f.ran, test.ran)
			})
		})
	}
}

// TestTrialFlake has a case fail once: it goes on with the others.
func TestTrialFlake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{takes: time.Second, once: true, does: map[int]map[string]string{7: {"b": trial.Failed}}}
		job := trial.Job{Mutant: mutation.Mutant{Switch: 7}, Cases: []string{"a", "b", "c"}}
		got, err := trial.Trial{Process: f.process, Patience: time.Minute, Limit: time.Hour}.Of(t.Context(), job)
		require.NoError(t, err)
		assert.Equal(t, []trial.Verdict{{Result: trial.Survived, Ran: 3, Of: 3}}, got)
		assert.Equal(t, []string{"", "a", "b", "", "b", "", "c"}, f.ran)
	})
}

// TestTrialLimit ends a trial that takes too long between two cases.
func TestTrialLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{takes: 30 * time.Second}
		got, err := trial.Trial{Process: f.process, Patience: time.Minute, Limit: time.Minute}.Of(t.Context(), trial.Job{Mutant: mutation.Mutant{Change: "x"}, Cases: []string{"a", "b", "c", "d"}})
		require.NoError(t, err)
		assert.Equal(t, []trial.Verdict{{Result: trial.Undecided, Ran: 2, Of: 4, Change: "x"}}, got)
	})
}

// TestTrialInterrupted says nothing about a mutant whose trial was interrupted.
func TestTrialInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		f := &fake{takes: time.Minute}
		verdicts, err := trial.Trial{Process: f.process, Patience: time.Hour, Limit: time.Hour}.Of(ctx, trial.Job{Cases: []string{"a"}})
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Empty(t, verdicts)
	})
}

// TestTrialTogether finds the two of eight mutants that a case notices; the six others need one
// process alone.
func TestTrialTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{takes: time.Second, does: map[int]map[string]string{3: {"c": trial.Failed}, 4: {"a": "hang"}}}
		var jobs []trial.Job
		for n := range 8 {
			jobs = append(jobs, trial.Job{Mutant: mutation.Mutant{ID: string(rune('0' + n)), Switch: n}, Cases: []string{"a", "c"}})
		}
		jobs[7].Cases = []string{"b"}
		of := trial.Trial{Process: f.process, Patience: time.Minute, Limit: time.Hour}
		got, err := of.Of(t.Context(), jobs...)
		require.NoError(t, err)
		byID := map[string]trial.Verdict{}
		for _, v := range got {
			byID[v.ID] = v
		}
		require.Len(t, byID, 8)
		assert.Equal(t, trial.Verdict{ID: "3", Result: trial.Killed, By: "c", How: trial.ByFailure}, byID["3"])
		assert.Equal(t, trial.Verdict{ID: "4", Result: trial.Killed, By: "a", How: trial.ByHang}, byID["4"])
		assert.Equal(t, trial.Verdict{ID: "7", Result: trial.Survived, Ran: 1, Of: 1}, byID["7"], "only the cases that may notice it count")
		for _, id := range []string{"0", "1", "2", "5", "6"} {
			assert.Equal(t, trial.Verdict{ID: id, Result: trial.Survived, Ran: 2, Of: 2}, byID[id])
		}

		for id, steady := range map[string]bool{"a": true, "c": false} {
			f.does[0] = map[string]string{"c": "crash"}
			got, err := of.Steady(t.Context(), id)
			require.NoError(t, err)
			assert.Equal(t, steady, got, id)
		}
		delete(f.does, 0)

		f.runs = 0
		_, err = of.Of(t.Context(), slices.Concat(jobs[:3], jobs[5:])...)
		require.NoError(t, err)
		assert.Equal(t, 1, f.runs)
	})
}

// TestTrialTogetherCrashes judges each mutant alone when no case is at fault.
func TestTrialTogetherCrashes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{does: map[int]map[string]string{2: {"": "crash"}, 3: {"end": "crash"}}}
		job := func(n int) trial.Job { return trial.Job{Mutant: mutation.Mutant{Switch: n}, Cases: []string{"a"}} }
		got, err := trial.Trial{Process: f.process, Patience: time.Minute, Limit: time.Hour}.Of(t.Context(), job(1), job(2), job(3))
		require.NoError(t, err)
		assert.Equal(t, []trial.Verdict{
			{Result: trial.Survived, Ran: 1, Of: 1},
			{Result: trial.Killed, By: trial.AtStart, How: trial.ByCrash},
			{Result: trial.Killed, By: trial.AtEnd, How: trial.ByCrash},
		}, got)
	})
}

func TestMeasure(t *testing.T) {
	lines := []trial.Line{
		{Reached: []int{1, 2}},
		{Case: "S4/a", State: trial.Passed, Reached: []int{3}},
		{Case: "S4/b", State: trial.Failed, Reached: []int{4}},
		{Case: "S4/c", State: "skipped"},
	}
	process := func(_ context.Context, mutants []int, _ trial.Order, tell func(trial.Line) bool) error {
		assert.Empty(t, mutants)
		for _, line := range lines {
			tell(line)
		}
		return nil
	}
	b, err := trial.Measure(t.Context(), process, trial.Order{}, func(trial.Line) {})
	require.NoError(t, err)
	assert.Equal(t, &trial.Baseline{Boot: []int{1, 2}, Cases: lines[1:2], Unfit: []string{"S4/b failed", "S4/c skipped"}}, b)
	assert.Equal(t, map[int]bool{1: true, 2: true, 3: true}, b.Reached())
}

func TestCandidates(t *testing.T) {
	b := &trial.Baseline{Boot: []int{1}, Cases: []trial.Line{
		{Case: "S1/slow", Took: 9, Reached: []int{1, 2}},
		{Case: "S12/cheap", Took: 1, Reached: []int{1, 3}},
		{Case: "S1/cheap", Took: 2, Reached: []int{2}},
	}}
	for mutant, want := range map[int][]string{
		1: {"S1/slow", "S1/cheap", "S12/cheap"}, // changes the server of all cases
		2: {"S1/cheap", "S1/slow"},
		3: {"S12/cheap"},
		4: nil,
	} {
		assert.Equal(t, want, b.Candidates(mutant, "S1"), mutant)
	}
}

func TestDraw(t *testing.T) {
	all := []mutation.Mutant{{ID: "a", System: "S1"}, {ID: "b", System: "S1"}, {ID: "c", System: "S2"}, {ID: "d", System: "S1"}}
	drawn := trial.Draw(all, 1, 2)
	assert.Len(t, drawn, 2)
	assert.Equal(t, drawn, trial.Draw(all, 1, 2), "a seed is one sample")
	assert.Len(t, trial.Draw(all, 1, 9), 4)
	assert.Equal(t, trial.Draw(all, 1, 4)[0], drawn[0], "a larger sample holds the smaller")
	different := false
	for seed := range uint64(10) {
		different = different || trial.Draw(all, seed, 1)[0] != drawn[0]
	}
	assert.True(t, different, "another seed is another sample")
	each := trial.DrawEach(all, 1, 1)
	assert.Len(t, each, 2)
	assert.NotEqual(t, each[0].System, each[1].System)
}

func TestKept(t *testing.T) {
	k := &trial.Kept{Release: "v1"}
	k.Count([]mutation.Mutant{{ID: "a", System: "S1", Switch: 1}, {ID: "b", System: "S1", Switch: 2}}, map[int]bool{2: true})
	k.Add([]trial.Verdict{
		{ID: "b", System: "S1", Result: trial.Survived, Change: "a && b", Reason: "equivalent: b is always true"},
		{ID: "a", System: "S1", Result: trial.Killed, By: "S1/x", How: trial.ByFailure},
	})
	text, err := k.Text()
	require.NoError(t, err)
	assert.Contains(t, string(text), "a && b", "source stays readable")
	read, err := trial.ReadKept(text)
	require.NoError(t, err)
	assert.Equal(t, k, read)

	mutants := []mutation.Mutant{{ID: "a"}, {ID: "b"}, {ID: "c"}}
	assert.Equal(t, []mutation.Mutant{{ID: "c"}}, k.Fresh(mutants))
	assert.Empty(t, k.Open(mutants))
	k.Add([]trial.Verdict{{ID: "b", Result: trial.Survived}, {ID: "a", Result: trial.Survived}})
	assert.Equal(t, "equivalent: b is always true", k.Verdicts[1].Reason, "a reason stays while the mutant survives")
	assert.Equal(t, []mutation.Mutant{{ID: "a"}}, k.Open(mutants))
	k.Add([]trial.Verdict{{ID: "b", Result: trial.Killed}})
	assert.Empty(t, k.Verdicts[1].Reason)
}
