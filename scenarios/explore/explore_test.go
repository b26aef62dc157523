package explore

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/trace"
	"snowglobe.test/scenarios/script"
)

const sample = `# Objects are written and read.
start
note one

# This part is beside the point.
apply a.yaml
note two

# And this is not.
list widgets
-- a.yaml --
kind: A
-- b.yaml --
kind: B
`

func testScript(text string) script.Script { return script.Parse("test.txtar", []byte(text)) }

// world is a Runner without a server: a script fails if it lists while a put of a widget
// is delayed for at least a tenth of a second, and shows an interleaving for each rule.
type world struct {
	mu   sync.Mutex
	runs int
	// moody makes each failure happen only once.
	moody bool
	had   map[string]bool
}

var worldPoints = []Point{
	{fault.Operation{Point: "store/put", Resource: "widgets.example.com", Server: "apiserver-0", Namespace: "default", Name: "a"}, 4},
	{fault.Operation{Point: "http/create", Resource: "widgets.example.com", Caller: "admin"}, 2},
	{fault.Operation{Point: "hook/rbac/bootstrap-roles", Verb: "post-start"}, 1},
	{fault.Operation{Point: "watch/widgets.example.com", Verb: "added", Caller: "admin"}, 3},
	{fault.Operation{Point: "store/list", Resource: "secrets"}, 9},
	{fault.Operation{Point: "informer/secrets", Verb: "list"}, 1},
}

func (w *world) Run(_ context.Context, task Task) (Outcome, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs++
	outcome := Outcome{Interleavings: []uint64{1}, Acted: map[string]int{}, Spent: Spent{Boots: 1, Boot: time.Millisecond}}
	if task.Points {
		outcome.Points = worldPoints
	}
	_, plan, _ := strings.Cut(task.Text, "-- "+planFile+" --\n")
	plan, _, _ = strings.Cut(plan, "\n-- ")
	rules, err := fault.ParsePlan(planFile, plan, nil)
	if err != nil {
		return outcome, err
	}
	for _, rule := range rules {
		outcome.Interleavings = append(outcome.Interleavings, hash(rule.Match.String()))
		if rule.Point != "store/put" || rule.Kind != fault.Delay {
			continue
		}
		outcome.Acted[rule.String()] = max(1, rule.Times)
		if rule.By >= 100*time.Millisecond && strings.Contains(task.Text, "list widgets") && !w.had[task.Text] {
			outcome.Failure = &Failure{ScriptFailed, "list widgets", "test.txtar:12: list: it took 3 tries\nand more"}
		}
	}
	if w.moody && outcome.Failure != nil {
		w.had[task.Text] = true
	}
	return outcome, nil
}

func TestExplore(t *testing.T) {
	folder := t.TempDir()
	corpus, err := OpenCorpus(folder)
	require.NoError(t, err)
	var last Progress
	report, err := Config{
		Script: testScript(sample), Runner: &world{}, Runs: 300, Workers: 3, Corpus: corpus, Progress: func(p Progress) { last = p },
	}.Explore(t.Context())
	require.NoError(t, err)
	assert.True(t, report.Runs == 300 && last.Runs == 300 && last.Of == 300 && report.Accepted+report.Failed == 300 && report.Kept != 0, "300 runs: %+v, %+v", report, last)
	require.Len(t, report.Failures, 1)
	require.Empty(t, report.Unstable)
	found := report.Failures[0]
	assert.True(t, found.Operations == 1 && len(found.Rules) == 1 && found.Commands == 1 && found.Seed <= 5 && found.Others == found.OtherSeeds, "it is shrunk: %+v", found)
	want := []string{"# This fails: test.txtar:12: list: it took 3 tries.", "seed ", "faults explore.faults", "list widgets", "check", "delay store/put", "by=100ms"}
	text, err := os.ReadFile(found.File)
	require.NoError(t, err)
	for _, part := range want {
		assert.Contains(t, string(text), part, "the script lacks")
	}
	for _, part := range []string{"note", "a.yaml", "b.yaml", "beside the point"} {
		assert.NotContains(t, string(text), part)
	}
	replayed, err := Replay(t.Context(), &world{}, script.Parse("replay.txtar", text), 5, 2)
	assert.True(t, err == nil && len(replayed.Failures) == 1 && replayed.Failures[0].Times == 5, "it is repeated: %v, %v", replayed, err)
	again, err := Config{Script: testScript(sample), Runner: &world{}, Runs: 10, Corpus: corpus}.Explore(t.Context())
	assert.True(t, err == nil && again.Interleavings >= report.Interleavings, "a second search begins with what the first has seen: %d interleavings, then %d (%v)", report.Interleavings, again.Interleavings, err)
}

// hooks is a Runner in which a script fails if the hook "b" is delayed.
type hooks struct{}

func (hooks) Run(_ context.Context, task Task) (Outcome, error) {
	outcome := Outcome{Acted: map[string]int{}, ActedAt: map[string][]string{}}
	_, text, _ := strings.Cut(task.Text, "-- "+planFile+" --\n")
	plan, err := fault.ParsePlan(planFile, text, nil)
	if err != nil {
		return outcome, err
	}
	for _, rule := range plan {
		for _, hook := range []string{"hook/a", "hook/b", "hook/c"} {
			if rule.Point == hook || rule.Point == "hook/*" {
				outcome.Acted[rule.String()]++
				outcome.ActedAt[rule.String()] = append(outcome.ActedAt[rule.String()], hook)
			}
		}
		if slices.Contains(outcome.ActedAt[rule.String()], "hook/b") {
			outcome.Failure = &Failure{Crashed, "hook/b", "hook b is late"}
		}
	}
	return outcome, nil
}

// TestShrinksToPoints shows that a rule about a family of points becomes one about the
// point that matters.
func TestShrinksToPoints(t *testing.T) {
	plan, err := fault.ParsePlan("plan", "delay hook/* by=11s optional", nil)
	require.NoError(t, err)
	s := &shrinker{
		run:  hooks{}.Run,
		same: &Failure{Crashed, "hook/b", "hook b is late"}, width: 1, left: 100,
		script: testScript("start\n"), best: Case{1, plan},
	}
	s.last, err = s.run(t.Context(), s.best.Task(s.script))
	require.NoError(t, err)
	require.NoError(t, s.shrink(t.Context()))
	assert.True(t, len(s.best.Plan) == 1 && s.best.Plan[0].Point == "hook/b", "it is shrunk to\n%s", s.best.Plan)
	assert.Equal(t, 1, s.last.Operations(), "it is shrunk to operations of\n%s", s.best.Plan)
}

func TestUnstable(t *testing.T) {
	report, err := Config{Script: testScript(sample), Runner: &world{moody: true, had: map[string]bool{}}, Runs: 200}.Explore(t.Context())
	assert.NoError(t, err)
	assert.Empty(t, report.Failures, "what does not happen again is not shrunk")
	assert.NotEmpty(t, report.Unstable, "what does not happen again is not shrunk")
}

func TestStopsAtFailures(t *testing.T) {
	report, err := Config{Script: testScript(sample), Runner: &world{}, Runs: 100_000, Workers: 2, Enough: func([]*Found) bool { return true }}.Explore(t.Context())
	assert.NoError(t, err)
	assert.Len(t, report.Failures, 1, "it stops at the first failure")
	assert.LessOrEqual(t, report.Runs, 10_000, "it stops at the first failure")
}

func TestRefusesWhatFailsByItself(t *testing.T) {
	_, err := Config{Script: testScript(sample), Runner: broken{}}.Explore(t.Context())
	assert.ErrorContains(t, err, "fails without any fault")
}

type broken struct{}

func (broken) Run(context.Context, Task) (Outcome, error) {
	return Outcome{Failure: &Failure{Crashed, "oh", "the API server crashed: oh"}}, nil
}

// TestShards shows that the shards make all runs, each once.
func TestShards(t *testing.T) {
	for run := 1; run <= 20; run++ {
		having := 0
		for i := 1; i <= 3; i++ {
			if (Shard{i, 3}).has(run) {
				having++
			}
		}
		assert.Equal(t, 1, having, "the shards that have run %d", run)
	}
	total := 0
	for i := 1; i <= 3; i++ {
		total += Shard{i, 3}.of(20)
	}
	assert.Equal(t, 20, total, "the runs of all shards")
	for _, text := range []string{"", "1", "0/2", "3/2", "a/b", "-1/-1"} {
		shard, err := ParseShard(text)
		assert.Error(t, err, "%q is taken for %v", text, shard)
	}
}

// TestPlanGenerator shows that plans are valid, bounded, and decided by the seed.
func TestPlanGenerator(t *testing.T) {
	classes := Classes()
	generator := NewPlanGenerator(worldPoints, classes)
	seen := map[fault.ActionKind]bool{}
	var before fault.Plan
	for seed := range uint64(3000) {
		plan := generator.Plan(newRandom(seed))
		again := generator.Plan(newRandom(seed))
		require.Equal(t, again.String(), plan.String(), "seed %d has two plans", seed)
		for _, p := range []fault.Plan{plan, generator.Mutate(newRandom(seed), before)} {
			require.NoError(t, p.Validate(nil))
			assert.True(t, len(p) <= maxRules && waiting(p) <= maxWaiting, "seed %d: too much:\n%s", seed, p)
			parsed, err := fault.ParsePlan("plan", p.String(), nil)
			assert.True(t, err == nil && parsed.String() == p.String(), "seed %d: the plan is not read back (%v):\n%s", seed, err, p)
			for _, rule := range p {
				seen[rule.Kind] = true
				assert.True(t, rule.Optional, "seed %d: a rule must fire: %s", seed, rule)
			}
		}
		before = plan
	}
	for _, class := range classes {
		assert.True(t, class == Break || class == Class(fault.Freeze) || seen[fault.ActionKind(class)], "no rule of the class %s in 3000 plans", class)
	}
}

func TestGeneratesOnlyItsClasses(t *testing.T) {
	generator := NewPlanGenerator(worldPoints, []Class{Break})
	for seed := range uint64(500) {
		for _, rule := range generator.Plan(newRandom(seed)) {
			require.True(t, strings.HasPrefix(rule.Point, "watch/") && (rule.Kind == fault.Cancel || rule.Kind == fault.Fail), "seed %d: %s", seed, rule)
		}
	}
}

func TestClasses(t *testing.T) {
	classes, err := ParseClasses("delay, break,delay")
	assert.True(t, err == nil && slices.Equal(classes, []Class{"delay", "break"}), "%v, %v", classes, err)
	_, err = ParseClasses("delay,brake")
	assert.ErrorContains(t, err, `"brake"`)
	plain := testScript("start\nwatch w configmaps\n")
	assert.Equal(t, []Class{"delay"}, DefaultClasses(plain), "a plain watch is not begun again")
}

// TestWith shows that a script with a case can be given another.
func TestWith(t *testing.T) {
	plan, err := fault.ParsePlan("plan", "delay store/put by=3s", nil)
	require.NoError(t, err)
	first := Case{Seed: 7, Plan: plan}.Task(testScript(sample)).Text
	assert.True(t, strings.HasPrefix(first, "# Objects are written and read.\n\nseed 7\nfaults explore.faults\nstart\n"), "the script begins in another way:\n%s", first)
	second := Case{Seed: 8}.Task(testScript(first)).Text
	assert.Equal(t, (Case{Seed: 8}).Task(testScript(sample)).Text, second, "of the first case something is left")
	const clock = "clock 2026-11-27T09:00:00Z\n" // it stays at the beginning, where it must be
	timed := Case{Seed: 7, Plan: plan}.Task(testScript(strings.Replace(sample, "start\n", clock+"start\n", 1))).Text
	assert.Equal(t, strings.Replace(first, "seed 7\n", "seed 7\n"+clock, 1), timed)
}

// TestBooted has cases begin after the first start, unless the script is about that.
func TestBooted(t *testing.T) {
	plan, err := fault.ParsePlan("plan", "delay store/put by=3s", nil)
	require.NoError(t, err)
	const booted = "reseed 7\nfaults explore.faults\n"
	const boots = "seed 7\nfaults explore.faults\n"
	for text, want := range map[string]string{
		"seed 5 pct 2\nstart\n":           "seed 5\nstart\nreseed 7 pct 2\nfaults explore.faults\ncheck\n",
		"start\nreseed 3 pos\n":           "seed 1\nstart\nreseed 7 pos\nfaults explore.faults\ncheck\n",
		"seed 5 pos\nhold hook/*\nstart":  "seed 7 pos\nfaults explore.faults\nhold hook/*\nstart\ncheck\n",
		"start\nnote x\n":                 "seed 1\nstart\n" + booted + "note x\ncheck\n",
		"seed 5\nfake webhook w\nstart\n": "seed 5\nfake webhook w\nstart\n" + booted + "check\n",
		"[!virtual] skip\nstart -- a\n":   "seed 1\n[!virtual] skip\nstart -- a\n" + booted + "check\n",
		"hold hook/*\nreseed 3\nstart\n":  "seed 1\nhold hook/*\n" + booted + "start\ncheck\n",
		"hold hook/*\nstart\n":            boots + "hold hook/*\nstart\ncheck\n",
		"[virtual] start\n":               boots + "[virtual] start\ncheck\n",
		"note x\n":                        boots + "note x\ncheck\n",
	} {
		one := Case{Seed: 7, Plan: plan}
		got := one.with(Booted(testScript(text)))
		commands, _, _ := strings.Cut(string(got.Text()), "\n\n")
		assert.Equal(t, strings.TrimSpace(want), commands)
		assert.Equal(t, got.Text(), one.with(Booted(got)).Text(), "it has been given the case already")
	}
}

// TestSearching has cases choose in another way than the script says.
func TestSearching(t *testing.T) {
	for text, want := range map[string]string{
		"start\n":                      "seed 1\nstart\nreseed 7 pct 2\ncheck\n",
		"seed 5 pos\nstart\n":          "seed 5\nstart\nreseed 7 pct 2\ncheck\n",
		"start\nreseed 3 pos\n":        "seed 1\nstart\nreseed 7 pct 2\ncheck\n",
		"hold hook/*\nstart\nnote x\n": "seed 7 pct 2\nhold hook/*\nstart\nnote x\ncheck\n",
	} {
		got := Case{Seed: 7}.with(Booted(Searching(testScript(text), "pct 2")))
		commands, _, _ := strings.Cut(string(got.Text()), "\n\n")
		assert.Equal(t, strings.TrimSpace(want), commands)
	}
}

// TestBeginning tells scripts apart by what they do before "reseed".
func TestBeginning(t *testing.T) {
	booted := Booted(testScript(sample))
	plan, err := fault.ParsePlan("plan", "delay store/put by=3s", nil)
	require.NoError(t, err)
	one, other := Case{Seed: 1}.with(booted), Case{Seed: 2, Plan: plan}.with(booted)
	assert.NotEmpty(t, Beginning(one))
	assert.Equal(t, Beginning(one), Beginning(other), "what a case adds comes after it")
	assert.Equal(t, Beginning(one), Beginning(one.Without(3, 5)))
	assert.NotEqual(t, Beginning(one), Beginning(one.Without(1, 2)), "the start is gone")
	assert.Empty(t, Beginning(Case{Seed: 1}.with(testScript(sample))))
}

func TestCorpusRefuses(t *testing.T) {
	for name, text := range map[string]string{"kept/a.faults": "delay store/put by=3s\n", "interleavings/a.txt": "snow\n", "kept/b.faults": "# seed 3\nsnow\n"} {
		corpus, err := OpenCorpus(t.TempDir())
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(corpus.folder, name), []byte(text), 0o600))
		_, err = (Config{Script: testScript(sample), Runner: &world{}, Corpus: corpus}).Explore(t.Context())
		assert.ErrorContains(t, err, filepath.Base(name), name)
	}
}

// TestInterleavings shows what is an interleaving, and what is not.
func TestInterleavings(t *testing.T) {
	turn := func(point, resource, name string) trace.Record {
		return trace.Record{Event: trace.Turn{Point: point, Resource: resource, Name: name}}
	}
	a, b, c := turn("store/put", "widgets", "a"), turn("store/watch-event", "widgets", "a"), turn("store/put", "secrets", "a")
	same := func(one, other []trace.Record) bool { return slices.Equal(Interleavings(one), Interleavings(other)) }
	assert.False(t, same([]trace.Record{a, b}, []trace.Record{b, a}), "two operations of one resource interleave")
	assert.True(t, same([]trace.Record{a, c, b}, []trace.Record{a, b, c}), "operations of two resources have none")
	assert.True(t, same([]trace.Record{a, b}, []trace.Record{turn("store/put", "widgets", "z"), b}), "the name of an object counts for nothing")
	request := trace.Record{Event: trace.Turn{Point: "http/list", Resource: "widgets", Caller: "admin"}}
	signal := trace.Record{Event: trace.Signal{Name: "HasBeenReady"}}
	assert.False(t, same([]trace.Record{request, signal}, []trace.Record{signal, request}), "a request comes before or after a step of the server's life")
	points := Points([]trace.Record{a, b, a, signal})
	assert.True(t, len(points) == 2 && points[0].Count == 2 && points[0].Point == "store/put", "points: %+v", points)
}
