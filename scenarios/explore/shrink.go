package explore

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/internal/shrink"
	"snowglobe.test/scenarios/script"
)

// shrinker makes a failing run smaller as long as it fails in the same way.
type shrinker struct {
	run  func(context.Context, Task) (Outcome, error)
	same *Failure
	// width is how many runs are made at once, and left how many there may be.
	width, left int

	script script.Script
	best   Case
	last   Outcome // of the best
}

// trial is a smaller script or case that may still fail.
type trial struct {
	script script.Script
	c      Case
}

// first takes the first of the trials that still fails, and returns its number, or -1.
func (s *shrinker) first(ctx context.Context, trials []trial) (int, error) {
	for at := 0; at < len(trials) && s.left > 0; {
		batch := trials[at:min(at+s.width, len(trials))]
		s.left -= len(batch)
		outcomes, err := s.runAll(ctx, batch)
		if err != nil {
			return -1, err
		}
		for i, outcome := range outcomes {
			if s.same.Same(outcome.Failure) {
				s.script, s.best, s.last = batch[i].script, batch[i].c, outcome
				return at + i, nil
			}
		}
		at += len(batch)
	}
	return -1, nil
}

// runAll runs trials side by side.
func (s *shrinker) runAll(ctx context.Context, trials []trial) ([]Outcome, error) {
	outcomes := make([]Outcome, len(trials))
	var running errgroup.Group
	for i, t := range trials {
		running.Go(func() (err error) {
			outcomes[i], err = s.run(ctx, t.c.Task(t.script))
			return err
		})
	}
	return outcomes, cmp.Or(running.Wait(), ctx.Err())
}

// shrink takes all steps of shrinking. If it ends early, s has the smallest run so far.
func (s *shrinker) shrink(ctx context.Context) error {
	for _, step := range []func(context.Context) error{s.plan, s.points, s.rules, s.commands, s.rules, s.seed} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// plan takes rules away.
func (s *shrinker) plan(ctx context.Context) error {
	return s.remove(ctx, len(s.best.Plan), func(p shrink.Part) trial {
		return trial{s.script, Case{s.best.Seed, slices.Delete(slices.Clone(s.best.Plan), p.From, p.To)}}
	})
}

// points replaces a rule about a family of points by rules about those at which it has
// acted, and then takes away the rules that are not needed.
func (s *shrinker) points(ctx context.Context) error {
	replaced := false
	for i := 0; i < len(s.best.Plan); i++ {
		rule := s.best.Plan[i]
		at := s.last.ActedAt[rule.String()]
		if !strings.HasSuffix(rule.Point, "*") || len(at) == 0 {
			continue
		}
		var each fault.Plan
		for _, point := range at {
			one := rule
			one.Point = point
			each = append(each, one)
		}
		plan := slices.Replace(slices.Clone(s.best.Plan), i, i+1, each...)
		taken, err := s.first(ctx, []trial{{s.script, Case{s.best.Seed, plan}}})
		if err != nil {
			return err
		}
		replaced = replaced || taken >= 0
	}
	if !replaced {
		return nil
	}
	return s.plan(ctx)
}

// commands takes commands away.
func (s *shrinker) commands(ctx context.Context) error {
	return s.remove(ctx, len(s.script.CommandLines()), func(p shrink.Part) trial {
		return trial{s.script.Without(p.From, p.To), s.best}
	})
}

// remove takes away as many parts as it can, of a plan or a script with length parts.
// without returns the trial that lacks some of them.
func (s *shrinker) remove(ctx context.Context, length int, without func(shrink.Part) trial) error {
	return shrink.Remove(length, func(parts []shrink.Part) (int, error) {
		var trials []trial
		for _, part := range parts {
			trials = append(trials, without(part))
		}
		return s.first(ctx, trials)
	})
}

// rules makes each rule act on fewer operations, for a shorter time.
func (s *shrinker) rules(ctx context.Context) error {
	for i := range s.best.Plan {
		for {
			var trials []trial
			for _, simpler := range simplerRules(s.best.Plan[i], s.last.Acted[s.best.Plan[i].String()]) {
				plan := slices.Clone(s.best.Plan)
				plan[i] = simpler
				trials = append(trials, trial{s.script, Case{s.best.Seed, plan}})
			}
			if taken, err := s.first(ctx, trials); err != nil || taken < 0 {
				if err != nil {
					return err
				}
				break
			}
		}
	}
	return nil
}

// simplerRules returns variants of a rule that act on fewer operations or for a shorter
// time, the simplest first. acted is the number of operations that the rule has acted on.
func simplerRules(rule fault.Rule, acted int) []fault.Rule {
	var simpler []fault.Rule
	add := func(change func(*fault.Rule)) {
		r := rule
		change(&r)
		simpler = append(simpler, r)
	}
	if acted > 1 {
		add(func(r *fault.Rule) { r.Times = 1 })
		for n := 1; n <= min(acted, 3); n++ {
			add(func(r *fault.Rule) { r.Nth, r.Times = fault.Range{First: n, Last: n}, 0 })
		}
		if acted > 3 {
			add(func(r *fault.Rule) { r.Times = acted / 2 })
		}
	}
	for _, wait := range waits {
		if wait < rule.By {
			add(func(r *fault.Rule) { r.By = wait })
		}
		if wait < rule.For {
			add(func(r *fault.Rule) { r.For = wait })
		}
	}
	return simpler
}

// seeds are tried in place of the one that was found.
var seeds = []uint64{1, 2, 3, 4, 5}

// seed takes a small seed, if it fails with one.
func (s *shrinker) seed(ctx context.Context) error {
	var trials []trial
	for _, seed := range seeds {
		if seed < s.best.Seed {
			trials = append(trials, trial{s.script, Case{seed, s.best.Plan}})
		}
	}
	_, err := s.first(ctx, trials)
	return err
}

// others runs the case with other seeds, and returns how many of them failed as well, and
// how many were tried.
func (s *shrinker) others(ctx context.Context) (failed, of int, err error) {
	var trials []trial
	for _, seed := range seeds {
		trials = append(trials, trial{s.script, Case{s.best.Seed + 1000*seed, s.best.Plan}})
	}
	for batch := range slices.Chunk(trials, s.width) {
		outcomes, err := s.runAll(ctx, batch)
		if err != nil {
			return failed, of, err
		}
		for _, outcome := range outcomes {
			of++
			if s.same.Same(outcome.Failure) {
				failed++
			}
		}
	}
	return failed, of, nil
}

// Found is a failure that was found, repeated and shrunk.
type Found struct {
	Failure *Failure `json:"failure"`
	// File is the script that repeats it, "" if nothing was written.
	File string `json:"file,omitempty"`
	// Seed, Rules and Operations say what it takes: the seed, the rules, and on how many
	// operations these act. Commands is how many commands are left of the script.
	Seed       uint64   `json:"seed"`
	Rules      []string `json:"rules"`
	Operations int      `json:"operations"`
	Commands   int      `json:"commands"`
	// OtherSeeds is how many other seeds were tried, and Others how many of them failed as well.
	Others     int `json:"others"`
	OtherSeeds int `json:"otherSeeds"`
	// Run is the number of the run that found the failure, and After the time until then.
	// Shrinking is the time that it took to shrink it, in ShrinkingRuns runs.
	Run           int           `json:"run"`
	After         time.Duration `json:"afterNanos"`
	Shrinking     time.Duration `json:"shrinkingNanos"`
	ShrinkingRuns int           `json:"shrinkingRuns"`
	// Repeated is how many of Repeats further runs failed in the same way, before
	// anything was shrunk.
	Repeated int `json:"repeated"`
	Repeats  int `json:"repeats"`
	// Times is how often explore has met it.
	Times int `json:"times"`

	replay string // the script that repeats it
}
