package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"snowglobe.test/scenarios/script"
)

// Config says what to explore. Script and Runner are required.
type Config struct {
	Script script.Script
	Runner Runner
	// Runs is how many runs there are over all shards, each with a seed of its own,
	// from First on. The default is 100, or without a limit if there is For.
	Runs  int
	First uint64
	// For is how long to explore at most; 0 is no limit. What is found is shrunk after
	// that.
	For time.Duration
	// Shard is the part of the runs to make; the default is all.
	Shard Shard
	// Workers is how many runs are made at once; the default is 1.
	Workers int
	// Boots has each run vary the start of the first servers too: otherwise the runs of a script that is
	// not about that (see Booted) begin at a server that has started.
	Boots bool
	// Classes are the classes of faults; the default is DefaultClasses.
	Classes []Class
	// Corpus keeps what is found; nil keeps nothing.
	Corpus *Corpus
	// Enough reports whether to stop, given all different failures so far; nil never stops.
	Enough func([]*Found) bool
	// Shrink is how many runs may be spent on shrinking a failure; the default is 400.
	Shrink int
	// Progress, if not nil, is called once a second with how far the search is, and at the end.
	Progress func(Progress)
}

const (
	// defaultRuns is how many runs there are if nothing else limits them.
	defaultRuns   = 100
	defaultShrink = 400
)

// Progress is how far a search is.
type Progress struct {
	Runs          int // made
	Of            int // to be made; 0 if only time limits them
	Interleavings int // seen
	New           int // of these, how many no earlier search had seen
	Failures      int // different ones
	Shrinking     int // failures that are being shrunk
	Elapsed       time.Duration
}

// Report is what a search did and found.
type Report struct {
	Script  string  `json:"script"`
	Shard   Shard   `json:"shard"`
	Classes []Class `json:"classes"`
	// Runs is how many runs were made. Of these, Accepted passed, also by the check of all that
	// clients were told; Failed failed; Unknown passed, but that check was undecided; and Skipped
	// ended early because the script skipped itself.
	Runs     int `json:"runs"`
	Accepted int `json:"accepted"`
	Failed   int `json:"failed"`
	Unknown  int `json:"unknown"`
	Skipped  int `json:"skipped"`
	// Interleavings is how many were seen, New how many of them no earlier search had seen, and
	// Kept how many cases showed a new one.
	Interleavings int `json:"interleavings"`
	New           int `json:"new"`
	Kept          int `json:"kept"`
	// Failures are different failures that could be repeated; Unstable are those that could not.
	Failures []*Found `json:"failures"`
	Unstable []*Found `json:"unstable"`
	// Elapsed is how long the search took, and Exploring the part until the last run that was
	// not for shrinking. Spent is what the processes took, of which Workers ran at once.
	Workers   int           `json:"workers"`
	Elapsed   time.Duration `json:"elapsedNanos"`
	Exploring time.Duration `json:"exploringNanos"`
	Spent     Spent         `json:"spent"`
}

// explorer is one search. The lock guards all below it.
type explorer struct {
	Config
	began time.Time
	plans *PlanGenerator
	slots chan struct{} // has an element for each running process; its capacity is their limit
	stop  context.CancelFunc

	mu        sync.Mutex
	next      int // the number of the next run, over all shards
	seen      map[uint64]bool
	mine      []uint64 // the interleavings that this search has seen first
	fresh     []Case   // those that showed a new interleaving and were not varied yet, the newest last
	varied    []Case   // those that were varied
	found     map[string]*Found
	shrinking int
	report    Report
	explored  time.Time // when the last run ended that was not for shrinking
}

// Explore searches until its runs, its time or ctx end. The error is why it could not
// search, and no failure of the script; what was found until then is in the report.
func (c Config) Explore(ctx context.Context) (Report, error) {
	e, err := c.explorer()
	if err != nil {
		return Report{}, err
	}
	searching, stop := context.WithCancel(ctx)
	defer stop()
	e.stop = stop
	if c.For > 0 {
		searching, stop = context.WithTimeout(searching, c.For)
		defer stop()
	}
	if err := e.scout(ctx); err != nil {
		return e.result(), errors.Join(err, e.write())
	}
	defer e.tell()()
	working, searching := errgroup.WithContext(searching)
	for range e.Workers {
		working.Go(func() error { return e.work(ctx, searching) })
	}
	err = working.Wait()
	if ctx.Err() != nil {
		err = nil
	}
	return e.result(), errors.Join(err, e.write())
}

// explorer fills in the defaults.
func (c Config) explorer() (*explorer, error) {
	if c.Runs == 0 && c.For == 0 {
		c.Runs = defaultRuns
	}
	c.First = cmp.Or(c.First, 1)
	c.Workers = cmp.Or(c.Workers, 1)
	c.Shrink = cmp.Or(c.Shrink, defaultShrink)
	if c.Shard == (Shard{}) {
		c.Shard = Shard{1, 1}
	}
	if !c.Boots {
		c.Script = Booted(c.Script)
	}
	if c.Classes == nil {
		c.Classes = DefaultClasses(c.Script)
	}
	e := &explorer{Config: c, began: time.Now(), slots: make(chan struct{}, c.Workers), seen: map[uint64]bool{}, found: map[string]*Found{}}
	e.report = Report{Script: c.Script.Name, Shard: c.Shard, Classes: c.Classes, Workers: c.Workers, Failures: []*Found{}, Unstable: []*Found{}}
	if c.Corpus == nil {
		return e, nil
	}
	var errKept, errInterleavings error
	e.fresh, errKept = c.Corpus.kept()
	e.seen, errInterleavings = c.Corpus.interleavings()
	return e, errors.Join(errKept, errInterleavings)
}

// run runs a task as soon as one of the slots is free.
func (e *explorer) run(ctx context.Context, task Task) (Outcome, error) {
	select {
	case e.slots <- struct{}{}:
	case <-ctx.Done():
		return Outcome{}, context.Cause(ctx)
	}
	defer func() { <-e.slots }()
	outcome, err := e.Runner.Run(ctx, task)
	if err != nil {
		return outcome, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.report.Spent.Add(outcome.Spent)
	return outcome, nil
}

// ErrFailsAlone is the error about a script that fails without any fault, so that its failures under
// faults would show nothing.
var ErrFailsAlone = errors.New("fails without any fault")

// scout runs the script once without faults, to learn which points it touches. A script
// that fails by itself cannot be explored.
func (e *explorer) scout(ctx context.Context) error {
	task := Case{Seed: e.First}.Task(e.Script)
	task.Points = true
	outcome, err := e.run(ctx, task)
	switch {
	case err != nil:
		return err
	case outcome.Failure != nil:
		return fmt.Errorf("%s %w, with seed %d; explore begins with a script that passes: %s", e.Script.Name, ErrFailsAlone, e.First, outcome.Failure.Text)
	case outcome.Skipped != "":
		return fmt.Errorf("%s skips itself: %s", e.Script.Name, outcome.Skipped)
	}
	e.plans = NewPlanGenerator(outcome.Points, e.Classes)
	e.explored = time.Now()
	return nil
}

// work makes runs until there are no more.
func (e *explorer) work(ctx, searching context.Context) error {
	for {
		number, c, ok := e.take(searching)
		if !ok {
			return nil
		}
		outcome, err := e.run(searching, c.Task(e.Script))
		switch {
		case searching.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		found, err := e.took(number, c, outcome)
		if err == nil && found != nil {
			err = e.settle(ctx, found, c)
		}
		if err != nil {
			return err
		}
	}
}

// take returns the next run of the shard: its number, from 1 on, and its case.
func (e *explorer) take(searching context.Context) (number int, c Case, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.next++; !e.Shard.has(e.next); e.next++ {
	}
	if searching.Err() != nil || e.Runs > 0 && e.next > e.Runs {
		return 0, Case{}, false
	}
	c.Seed = e.First + uint64(e.next) - 1
	random := newRandom(c.Seed)
	switch from := e.varies(random); {
	case from == nil:
		c.Plan = e.plans.Plan(random)
	default:
		c.Plan = e.plans.Mutate(random, from.Plan)
	}
	return e.next, c, true
}

// varies chooses a kept case to vary. It returns nil, for a new case, every other time on
// average. The newest case that was not varied yet comes first, and then a random one.
func (e *explorer) varies(random *rand.Rand) *Case {
	if len(e.fresh)+len(e.varied) == 0 || random.IntN(2) == 0 {
		return nil
	}
	if last := len(e.fresh) - 1; last >= 0 {
		e.varied = append(e.varied, e.fresh[last])
		e.fresh = e.fresh[:last]
		return &e.varied[len(e.varied)-1]
	}
	return &e.varied[random.IntN(len(e.varied))]
}

// took counts a run. It returns the failure if it is a new one.
func (e *explorer) took(number int, c Case, outcome Outcome) (*Found, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.report.Runs++
	e.explored = time.Now()
	switch {
	case outcome.Failure != nil:
		e.report.Failed++
	case outcome.Skipped != "":
		e.report.Skipped++
	case outcome.Unknown != "":
		e.report.Unknown++
	default:
		e.report.Accepted++
	}
	if err := e.learn(c, outcome.Interleavings); err != nil {
		return nil, err
	}
	if outcome.Failure == nil {
		return nil, nil
	}
	name := string(outcome.Failure.Kind) + " " + outcome.Failure.Cause
	if found, known := e.found[name]; known {
		found.Times++
		return nil, nil
	}
	found := &Found{Failure: outcome.Failure, Run: number, Seed: c.Seed, After: time.Since(e.began), Times: 1}
	e.found[name] = found
	e.shrinking++
	return found, nil
}

// learn keeps a case that has shown a new interleaving; mu is held.
func (e *explorer) learn(c Case, interleavings []uint64) error {
	before := len(e.mine)
	for _, interleaving := range interleavings {
		if !e.seen[interleaving] {
			e.seen[interleaving] = true
			e.mine = append(e.mine, interleaving)
		}
	}
	if len(e.mine) == before {
		return nil
	}
	e.report.Kept++
	e.fresh = append(e.fresh, c)
	if e.Corpus == nil {
		return nil
	}
	return e.Corpus.keep(c)
}

// repeats is how often a failure must happen again before it is shrunk.
const repeats = 2

// settle repeats a failure, shrinks it and writes it down.
func (e *explorer) settle(ctx context.Context, found *Found, c Case) error {
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.shrinking--
	}()
	began := time.Now()
	s := &shrinker{run: e.run, same: found.Failure, width: e.Workers, left: e.Shrink, script: e.Script, best: c}
	outcomes, err := s.runAll(ctx, slices.Repeat([]trial{{e.Script, c}}, repeats))
	if err != nil {
		return err
	}
	found.Repeats = repeats
	for _, outcome := range outcomes {
		if found.Failure.Same(outcome.Failure) {
			found.Repeated++
			s.last = outcome
		}
	}
	if found.Repeated == repeats {
		e.addFailure(found)
		if err := s.shrink(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		if found.Others, found.OtherSeeds, err = s.others(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	found.Shrinking, found.ShrinkingRuns = time.Since(began), e.Shrink-s.left
	s.describe(found)
	return e.note(found)
}

// addFailure adds a failure to the report, and stops the search if there are enough now.
func (e *explorer) addFailure(found *Found) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.report.Failures = append(e.report.Failures, found)
	if e.Enough != nil && e.Enough(e.report.Failures) {
		e.stop()
	}
}

// describe fills in what it takes for the failure to happen: see Found.
func (s *shrinker) describe(found *Found) {
	if s.last.Failure != nil {
		found.Failure = s.last.Failure
	}
	found.Seed, found.Commands = s.best.Seed, len(s.script.CommandLines())
	found.Operations = s.last.Operations()
	found.Rules = []string{}
	for _, rule := range s.best.Plan {
		found.Rules = append(found.Rules, rule.String())
	}
	found.replay = replay(s.script, s.best, found)
}

// note writes a failure into the corpus, or adds it to the unstable ones of the report.
func (e *explorer) note(found *Found) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if found.Repeated < found.Repeats {
		e.report.Unstable = append(e.report.Unstable, found)
		return nil
	}
	if e.Corpus == nil {
		return nil
	}
	var err error
	found.File, err = e.Corpus.writeFailure(found)
	return err
}

// tell calls Progress every second until done is called.
func (e *explorer) tell() (done func()) {
	if e.Progress == nil {
		return func() {}
	}
	ended := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				e.Progress(e.progress())
			case <-ended:
				e.Progress(e.progress())
				return
			}
		}
	})
	return func() { close(ended); telling.Wait() }
}

func (e *explorer) progress() Progress {
	e.mu.Lock()
	defer e.mu.Unlock()
	return Progress{
		Runs: e.report.Runs, Of: e.Shard.of(e.Runs), Interleavings: len(e.seen), New: len(e.mine), Failures: len(e.report.Failures),
		Shrinking: e.shrinking, Elapsed: time.Since(e.began),
	}
}

// result is the report so far.
func (e *explorer) result() Report {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.report.Interleavings, e.report.New = len(e.seen), len(e.mine)
	e.report.Elapsed = time.Since(e.began)
	e.report.Exploring = max(0, e.explored.Sub(e.began))
	return e.report
}

// write leaves the report and the interleavings in the corpus.
func (e *explorer) write() error {
	if e.Corpus == nil {
		return nil
	}
	report := e.result()
	e.mu.Lock()
	defer e.mu.Unlock()
	interleavings := slices.Collect(maps.Keys(e.seen))
	return errors.Join(e.Corpus.writeInterleavings(e.Shard, interleavings), e.Corpus.writeReport(e.Shard, report))
}
