package trial

import (
	"context"
	"errors"
	"maps"
	"time"

	"snowglobe.test/conformance/mutants/mutation"
)

// Job is a mutant with the cases that may notice it.
type Job struct {
	Mutant mutation.Mutant
	Cases  []string
}

// Trial finds out about mutants.
type Trial struct {
	Process Process
	// RealTime runs the cases in real time.
	RealTime bool
	// Patience is how long a process may say nothing before it counts as hung.
	Patience time.Duration
	// Limit bounds the time of a process; no further case begins after it.
	Limit time.Duration
}

// Of gives mutants to cases, one after another, until one fails. Several mutants are on
// together, which is quick for those that survive: when a case fails, it judges each of them
// alone, and those that it does not kill go on with the cases that are left. A mutant that was
// alone is judged again: a case that fails once in a thousand runs, whatever the mutant, kills
// none. Mutants that hide each other are taken for survivors.
func (t Trial) Of(ctx context.Context, jobs ...Job) ([]Verdict, error) {
	var verdicts []Verdict
	passed := map[string]bool{}
	for len(jobs) > 0 {
		verdict, err := t.process(ctx, jobs, passed)
		if err != nil {
			return verdicts, err
		}
		if verdict.Result != Killed || len(jobs) == 1 && !verdict.byCase() {
			for _, j := range jobs {
				verdicts = append(verdicts, verdict.about(j, passed))
			}
			return verdicts, nil
		}
		killed, left, err := t.alone(ctx, jobs, verdict.By, passed)
		verdicts, jobs = append(verdicts, killed...), left
		if err != nil {
			return verdicts, err
		}
	}
	return verdicts, nil
}

// alone gives each mutant on its own to the case that failed on all of them, or to all of its
// cases if the process failed at its start or end.
func (t Trial) alone(ctx context.Context, jobs []Job, by string, passed map[string]bool,
) (verdicts []Verdict, left []Job, err error) {
	if !(Verdict{By: by}).byCase() {
		for _, j := range jobs {
			found, err := t.Of(ctx, j)
			verdicts = append(verdicts, found...)
			if err != nil {
				return verdicts, nil, err
			}
		}
		return verdicts, nil, nil
	}
	for _, j := range jobs {
		one := Job{j.Mutant, []string{by}}
		verdict, err := t.process(ctx, []Job{one}, map[string]bool{})
		switch {
		case err != nil:
			return verdicts, nil, err
		case verdict.Result == Killed:
			verdicts = append(verdicts, verdict.about(j, nil))
		default:
			left = append(left, j)
		}
	}
	passed[by] = true // for those that are left
	return verdicts, left, nil
}

// Steady reports whether a case passes alone without a mutant. One that does not kills no mutant.
func (t Trial) Steady(ctx context.Context, id string) (bool, error) {
	verdict, err := t.process(ctx, []Job{{Cases: []string{id}}}, map[string]bool{})
	return verdict.Result == Survived, err
}

// about is the verdict about one of the mutants of a process, given the cases that passed.
func (v Verdict) about(j Job, passed map[string]bool) Verdict {
	v.ID, v.System, v.Change = j.Mutant.ID, j.Mutant.System, j.Mutant.Change
	if v.Result == Killed {
		return v
	}
	v.Ran, v.Of = both(j.Cases, passed), len(j.Cases)
	if v.Ran == v.Of {
		v.Result = Survived
	}
	return v
}

// byCase reports whether it was a case that killed, and not the start or the end of the process.
func (v Verdict) byCase() bool { return v.By != AtStart && v.By != AtEnd }

// both is how many of the cases passed.
func both(cases []string, passed map[string]bool) int {
	n := 0
	for _, id := range cases {
		if passed[id] {
			n++
		}
	}
	return n
}

var errHung = errors.New("it says nothing any more")

// process runs one process with the mutants on and the cases that have not passed yet. It
// returns how that ended, and adds to those that passed.
func (t Trial) process(ctx context.Context, jobs []Job, passed map[string]bool) (verdict Verdict, err error) {
	numbers, cases := together(jobs, passed)
	verdict.Result = Survived
	if len(cases) == 0 { // which would mean all to a process
		return verdict, nil
	}
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(t.Patience, func() { cancel(errHung) })
	defer silence.Stop()
	began := time.Now()
	at, ran := AtStart, 0
	err = t.Process(within, numbers, Order{Cases: cases, RealTime: t.RealTime}, func(line Line) bool {
		silence.Reset(t.Patience)
		switch {
		case line.State == Failed:
			verdict = Verdict{Result: Killed, By: line.Case, How: ByFailure}
			return false
		case line.State == NotRun: // the end is near
			return true
		case line.Case != "":
			passed[line.Case] = true
			ran++
		}
		at = next(cases, ran)
		if at != AtEnd && time.Since(began) > t.Limit {
			verdict.Result = Undecided
			return false
		}
		return true
	})
	if ctx.Err() != nil {
		return Verdict{}, context.Cause(ctx)
	}
	if err != nil && verdict.Result == Survived {
		verdict = Verdict{Result: Killed, By: at, How: ended(err)}
	}
	return verdict, nil
}

// together are the switches of all jobs, and the cases that have not passed yet.
func together(jobs []Job, passed map[string]bool) (numbers []int, cases []string) {
	seen := maps.Clone(passed)
	for _, j := range jobs {
		numbers = append(numbers, j.Mutant.Switch)
		for _, id := range j.Cases {
			if !seen[id] {
				seen[id] = true
				cases = append(cases, id)
			}
		}
	}
	return numbers, cases
}

// next is what follows when some cases have run.
func next(cases []string, ran int) string {
	if ran < len(cases) {
		return cases[ran]
	}
	return AtEnd
}

// ended is how a process ended that did not do all.
func ended(err error) string {
	if errors.Is(err, errHung) {
		return ByHang
	}
	return ByCrash
}
