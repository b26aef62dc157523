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

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/trace"
)

const script = `# Objects are written and read.
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

// world is a Runner without a server: a script fails if it lists while a put of a widget
// is delayed for at least a tenth of a second, and shows an order for each rule.
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
	outcome := Outcome{Orders: []uint64{1}, Acted: map[string]int{}, Spent: Spent{Boots: 1, Boot: time.Millisecond}}
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
		outcome.Orders = append(outcome.Orders, hash(rule.Match.String()))
		if rule.Point != "store/put" || rule.Kind != fault.Delay {
			continue
		}
		outcome.Acted[rule.String()] = max(1, rule.Times)
		if rule.By >= 100*time.Millisecond && strings.Contains(task.Text, "list widgets") && !w.had[task.Text] {
			outcome.Failure = NewFailure(ScriptFailed, "test.txtar:12: list: it took 3 tries\nand more")
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
	if err != nil {
		t.Fatal(err)
	}
	var last Progress
	report, err := Config{
		Script: Script{"test", script}, Runner: &world{}, Runs: 300, Workers: 3, Corpus: corpus, Progress: func(p Progress) { last = p },
	}.Explore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if report.Runs != 300 || last.Runs != 300 || last.Of != 300 || report.Accepted+report.Failed != 300 || report.Kept == 0 {
		t.Errorf("300 runs: %+v, %+v", report, last)
	}
	if len(report.Failures) != 1 || len(report.Unstable) != 0 {
		t.Fatalf("there is one failure: %s", report.Text())
	}
	found := report.Failures[0]
	if found.Operations != 1 || len(found.Rules) != 1 || found.Commands != 1 || found.Seed > 5 || found.Others != found.OtherSeeds {
		t.Errorf("it is shrunk: %+v", found)
	}
	want := []string{"# This fails: test.txtar:12: list: it took 3 tries.", "seed ", "faults explore.faults", "list widgets", "check", "delay store/put", "by=100ms"}
	text, err := os.ReadFile(found.File)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range want {
		if !strings.Contains(string(text), part) {
			t.Errorf("the script lacks %q:\n%s", part, text)
		}
	}
	for _, part := range []string{"note", "a.yaml", "b.yaml", "beside the point"} {
		if strings.Contains(string(text), part) {
			t.Errorf("the script has %q:\n%s", part, text)
		}
	}
	replayed, err := Replay(t.Context(), &world{}, Script{"replay", string(text)}, 5, 2)
	if err != nil || len(replayed.Failures) != 1 || replayed.Failures[0].Times != 5 {
		t.Errorf("it is repeated: %v, %v", replayed, err)
	}
	again, err := Config{Script: Script{"test", script}, Runner: &world{}, Runs: 10, Corpus: corpus}.Explore(t.Context())
	if err != nil || again.Orders < report.Orders {
		t.Errorf("a second search begins with what the first has seen: %d orders, then %d (%v)", report.Orders, again.Orders, err)
	}
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
			outcome.Failure = NewFailure(Crashed, "hook b is late")
		}
	}
	return outcome, nil
}

// TestShrinksToPoints shows that a rule about a family of points becomes one about the
// point that matters.
func TestShrinksToPoints(t *testing.T) {
	plan, err := fault.ParsePlan("plan", "delay hook/* by=11s optional", nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &shrinker{
		run:  hooks{}.Run,
		same: NewFailure(Crashed, "hook b is late"), width: 1, left: 100,
		script: Script{"test", "start\n"}, best: Case{1, plan},
	}
	if s.last, err = s.run(t.Context(), Task{Text: s.script.With(s.best)}); err != nil {
		t.Fatal(err)
	}
	if err := s.shrink(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(s.best.Plan) != 1 || s.best.Plan[0].Point != "hook/b" || s.last.Operations() != 1 {
		t.Errorf("it is shrunk to %d operations of\n%s", s.last.Operations(), s.best.Plan)
	}
}

func TestUnstable(t *testing.T) {
	report, err := Config{Script: Script{"test", script}, Runner: &world{moody: true, had: map[string]bool{}}, Runs: 200}.Explore(t.Context())
	if err != nil || len(report.Failures) != 0 || len(report.Unstable) == 0 {
		t.Errorf("what does not happen again is not shrunk: %v\n%s", err, report.Text())
	}
}

func TestStopsAtFailures(t *testing.T) {
	report, err := Config{Script: Script{"test", script}, Runner: &world{}, Runs: 100_000, Workers: 2, Enough: func([]*Found) bool { return true }}.Explore(t.Context())
	if err != nil || len(report.Failures) != 1 || report.Runs > 10_000 {
		t.Errorf("it stops at the first failure: %v\n%s", err, report.Text())
	}
}

func TestRefusesWhatFailsByItself(t *testing.T) {
	_, err := Config{Script: Script{"test", script}, Runner: broken{}}.Explore(t.Context())
	if err == nil || !strings.Contains(err.Error(), "fails without any fault") {
		t.Errorf("the error is %v", err)
	}
}

type broken struct{}

func (broken) Run(context.Context, Task) (Outcome, error) {
	return Outcome{Failure: NewFailure(Crashed, "the API server crashed: oh")}, nil
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
		if having != 1 {
			t.Errorf("run %d is of %d shards", run, having)
		}
	}
	total := 0
	for i := 1; i <= 3; i++ {
		total += Shard{i, 3}.of(20)
	}
	if total != 20 {
		t.Errorf("the shards have %d of 20 runs", total)
	}
	for _, text := range []string{"", "1", "0/2", "3/2", "a/b", "-1/-1"} {
		if shard, err := ParseShard(text); err == nil {
			t.Errorf("%q is taken for %v", text, shard)
		}
	}
}

// TestDraw shows that plans are valid, bounded, and decided by the seed.
func TestDraw(t *testing.T) {
	classes := Classes()
	draw := NewDraw(worldPoints, classes)
	seen := map[fault.ActionKind]bool{}
	var before fault.Plan
	for seed := range uint64(3000) {
		plan := draw.Plan(newRandom(seed))
		if again := draw.Plan(newRandom(seed)); plan.String() != again.String() {
			t.Fatalf("seed %d has two plans:\n%s\n%s", seed, plan, again)
		}
		for _, p := range []fault.Plan{plan, draw.Vary(newRandom(seed), before)} {
			if err := p.Validate(nil); err != nil {
				t.Fatal(err)
			}
			if len(p) > maxRules || waiting(p) > maxWaiting {
				t.Errorf("seed %d: too much:\n%s", seed, p)
			}
			if parsed, err := fault.ParsePlan("plan", p.String(), nil); err != nil || parsed.String() != p.String() {
				t.Errorf("seed %d: the plan is not read back (%v):\n%s", seed, err, p)
			}
			for _, rule := range p {
				seen[rule.Kind] = true
				if !rule.Optional {
					t.Errorf("seed %d: a rule must fire: %s", seed, rule)
				}
			}
		}
		before = plan
	}
	for _, class := range classes {
		if class != Break && class != Class(fault.Freeze) && !seen[fault.ActionKind(class)] {
			t.Errorf("no rule of the class %s in 3000 plans", class)
		}
	}
}

func TestDrawsOnlyItsClasses(t *testing.T) {
	draw := NewDraw(worldPoints, []Class{Break})
	for seed := range uint64(500) {
		for _, rule := range draw.Plan(newRandom(seed)) {
			if !strings.HasPrefix(rule.Point, "watch/") || rule.Kind != fault.Cancel && rule.Kind != fault.Fail {
				t.Fatalf("seed %d: %s", seed, rule)
			}
		}
	}
}

func TestClasses(t *testing.T) {
	if classes, err := ParseClasses("delay, break,delay"); err != nil || !slices.Equal(classes, []Class{"delay", "break"}) {
		t.Errorf("%v, %v", classes, err)
	}
	if _, err := ParseClasses("delay,brake"); err == nil || !strings.Contains(err.Error(), `"brake"`) {
		t.Errorf("the error is %v", err)
	}
	plain := Script{"test", "start\nwatch w configmaps\n"}
	if classes := plain.DefaultClasses(); !slices.Equal(classes, []Class{"delay"}) {
		t.Errorf("a plain watch is not begun again: %v", classes)
	}
}

func TestEssence(t *testing.T) {
	for text, want := range map[string]string{
		"a/b.txtar:12: list: not within 1m0s\nand more":                                     "list: not within #m#s",
		`the API server crashed: hook; the rule "delay x" has fired 3 times, at last at 2s`: "the API server crashed: hook",
		"linearizability: default/a at 220":                                                 "linearizability: default/a at #",
	} {
		if got := Essence(text); got != want {
			t.Errorf("the essence of %q is %q, want %q", text, got, want)
		}
	}
}

// TestWith shows that a script with a case can be given another.
func TestWith(t *testing.T) {
	plan, err := fault.ParsePlan("plan", "delay store/put by=3s", nil)
	if err != nil {
		t.Fatal(err)
	}
	first := Script{"test", script}.With(Case{Seed: 7, Plan: plan})
	if !strings.HasPrefix(first, "# Objects are written and read.\n\nseed 7\nfaults explore.faults\nstart\n") {
		t.Errorf("the script begins in another way:\n%s", first)
	}
	second := Script{"test", first}.With(Case{Seed: 8})
	if want := (Script{"test", script}).With(Case{Seed: 8}); second != want {
		t.Errorf("of the first case something is left:\n%s\nwant:\n%s", second, want)
	}
}

func TestCorpusRefuses(t *testing.T) {
	for name, text := range map[string]string{"kept/a.faults": "delay store/put by=3s\n", "orders/a.txt": "snow\n", "kept/b.faults": "# seed 3\nsnow\n"} {
		corpus, err := OpenCorpus(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(corpus.folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := (Config{Script: Script{"test", script}, Runner: &world{}, Corpus: corpus}).Explore(t.Context()); err == nil || !strings.Contains(err.Error(), filepath.Base(name)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOrders shows what is an order, and what is not.
func TestOrders(t *testing.T) {
	turn := func(point, resource, name string) trace.Record {
		return trace.Record{Event: trace.Turn{Point: point, Resource: resource, Name: name}}
	}
	a, b, c := turn("store/put", "widgets", "a"), turn("store/watch-event", "widgets", "a"), turn("store/put", "secrets", "a")
	same := func(one, other []trace.Record) bool { return slices.Equal(Orders(one), Orders(other)) }
	if same([]trace.Record{a, b}, []trace.Record{b, a}) {
		t.Error("two operations of one resource have an order")
	}
	if !same([]trace.Record{a, c, b}, []trace.Record{a, b, c}) {
		t.Error("operations of two resources have none")
	}
	if !same([]trace.Record{a, b}, []trace.Record{turn("store/put", "widgets", "z"), b}) {
		t.Error("the name of an object counts for nothing")
	}
	request := trace.Record{Event: trace.Turn{Point: "http/list", Resource: "widgets", Caller: "admin"}}
	signal := trace.Record{Event: trace.Signal{Name: "HasBeenReady"}}
	if same([]trace.Record{request, signal}, []trace.Record{signal, request}) {
		t.Error("a request comes before or after a step of the server's life")
	}
	points := Points([]trace.Record{a, b, a, signal})
	if len(points) != 2 || points[0].Count != 2 || points[0].Point != "store/put" {
		t.Errorf("points: %+v", points)
	}
}
