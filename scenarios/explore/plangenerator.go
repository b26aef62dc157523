package explore

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/internal/nearest"
	"snowglobe.test/scenarios/script"
)

// Class is a class of rules that plans are made of: the name of an action, or Break.
type Class string

// Break ends watches in the middle, as a bad network does. Whoever watches goes on.
const Break Class = "break"

// Classes returns all classes. Delay slows down and reorders, and Break is for clients
// that recover; a correct script passes under both. The others can make it fail.
func Classes() []Class {
	return []Class{
		Class(fault.Delay), Break, Class(fault.Hold), Class(fault.Freeze), Class(fault.Compact), Class(fault.Duplicate),
		Class(fault.Cancel), Class(fault.LoseReply), Class(fault.Fail), Class(fault.Drop), Class(fault.Crash),
	}
}

// DefaultClasses are those under which a correct script passes. A watch of the command
// "watch" is not begun again, so scripts that have one are only slowed down.
func DefaultClasses(s script.Script) []Class {
	classes := []Class{Class(fault.Delay), Break}
	if slices.ContainsFunc(s.CommandLines(), func(line string) bool { return slices.Contains(strings.Fields(line), "watch") }) {
		return classes[:1]
	}
	return classes
}

// lifeFamilies are the families of points in servers' lives.
var lifeFamilies = []string{"hook", "signal", "informer", "cache"}

// PlanGenerator generates plans of faults.
type PlanGenerator struct {
	near  pool           // of the resources that clients of the script ask for
	life  pool           // of the servers' lives: hooks, signals, informers, caches
	all   pool           // of all
	count map[string]int // how many operations there were, by groupOf
}

// pool is the points to choose from for each class, of those that have any.
type pool map[Class][]Point

// NewPlanGenerator returns one for plans of some classes, at the points that a run had.
func NewPlanGenerator(points []Point, classes []Class) *PlanGenerator {
	g := &PlanGenerator{near: pool{}, life: pool{}, all: pool{}, count: map[string]int{}}
	asked := map[string]bool{}
	for _, p := range points {
		if strings.HasPrefix(p.Point, fault.HTTPPoint) && p.Resource != "" && !strings.HasPrefix(p.Caller, "system:") {
			asked[p.Resource] = true
		}
	}
	for _, p := range points {
		g.count[groupOf(p)] += p.Count
		family, of, _ := strings.Cut(p.Point, "/")
		for _, class := range classes {
			if possible(class, p) == nil {
				continue
			}
			g.all[class] = append(g.all[class], p)
			if asked[p.Resource] || asked[of] {
				g.near[class] = append(g.near[class], p)
			}
			if slices.Contains(lifeFamilies, family) {
				g.life[class] = append(g.life[class], p)
			}
		}
	}
	return g
}

// maxRules is how many rules a plan has at most.
const maxRules = 4

// Plan generates a plan. It may be empty: then the seed decides alone.
func (g *PlanGenerator) Plan(random *rand.Rand) fault.Plan {
	var plan fault.Plan
	if len(g.all) == 0 || random.IntN(8) == 0 {
		return plan
	}
	for len(plan) == 0 || len(plan) < maxRules && random.IntN(3) > 0 {
		plan = g.add(random, plan)
	}
	return plan
}

// add adds a rule to a plan that does not make it wait too long.
func (g *PlanGenerator) add(random *rand.Rand, plan fault.Plan) fault.Plan {
	for {
		if more := append(slices.Clone(plan), g.rule(random)); waiting(more) <= maxWaiting {
			return more
		}
	}
}

// Mutate generates a plan that differs a little from another.
func (g *PlanGenerator) Mutate(random *rand.Rand, plan fault.Plan) fault.Plan {
	plan = slices.Clone(plan)
	switch {
	case len(g.all) == 0:
	case len(plan) > 0 && random.IntN(4) == 0:
		if more := g.shift(random, plan); waiting(more) <= maxWaiting {
			plan = more
		}
	case len(plan) > 0 && random.IntN(3) == 0:
		i := random.IntN(len(plan))
		plan = g.add(random, slices.Delete(plan, i, i+1))
	case len(plan) > 1 && random.IntN(3) == 0:
		i := random.IntN(len(plan))
		plan = slices.Delete(plan, i, i+1)
	case len(plan) < maxRules && random.IntN(2) == 0:
		plan = g.add(random, plan)
	}
	return plan
}

// shift moves a rule of a plan to another operation, or lets it make others wait for
// another time.
func (g *PlanGenerator) shift(random *rand.Rand, plan fault.Plan) fault.Plan {
	plan = slices.Clone(plan)
	rule := &plan[random.IntN(len(plan))]
	switch wait := waitAt(random, rule.Point); {
	case rule.Nth.First > 0 && random.IntN(2) == 0:
		n := 1 + random.IntN(maxNth)
		rule.Nth = fault.Range{First: n, Last: n}
	case rule.By > 0:
		rule.By = wait
	case rule.For > 0:
		rule.For = wait
	}
	return plan
}

// rule generates a rule: its class first, then the kind of point, so that plans are not all
// about the class that is possible at most points, or about the busiest point.
func (g *PlanGenerator) rule(random *rand.Rand) fault.Rule {
	from := g.all
	switch n := random.IntN(8); {
	case n < 5 && len(g.near) > 0:
		from = g.near
	case n < 7 && len(g.life) > 0:
		from = g.life
	}
	classes := slices.Sorted(maps.Keys(from)) // sorted, for a seed to mean the same each time
	class := classes[random.IntN(len(classes))]
	kinds := kindsOf(from[class])
	kind := kinds[random.IntN(len(kinds))]
	of := slices.DeleteFunc(slices.Clone(from[class]), func(p Point) bool { return kindOf(p) != kind })
	point := of[random.IntN(len(of))]
	return g.ruleOf(random, class, possible(class, point), point)
}

// maxNth is how late an operation is that a rule chooses by its number, at most.
const maxNth = 8

// groupOf is what most rules are about: the operations of a point on a resource.
func groupOf(p Point) string {
	return strings.Join([]string{p.Point, string(p.Phase), p.Verb, p.Resource}, " ")
}

// kindOf is the kind of a point in which points are alike: such as "store/put", "hook".
func kindOf(p Point) string {
	switch family, _, _ := strings.Cut(p.Point, "/"); family {
	case "store":
		return p.Point
	case "cache":
		return family + " " + p.Verb
	default:
		return family
	}
}

func kindsOf(points []Point) []string {
	var kinds []string
	for _, p := range points {
		if kind := kindOf(p); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// possible returns the entry of the catalogue of a point if the class has a rule for
// it, else nil.
func possible(class Class, p Point) *fault.PointKind {
	action := fault.ActionKind(class)
	if class == Break {
		if family, _, _ := strings.Cut(p.Point, "/"); family != "watch" && p.Point != fault.StoreWatchEvent {
			return nil
		}
		action = fault.Cancel
	}
	entries, err := fault.FindPoints(p.Point)
	if err != nil {
		return nil
	}
	for i, entry := range entries {
		verb := entry.Verbs == nil || slices.Contains(entry.Verbs, p.Verb)
		phase := entry.Phases == nil && (p.Phase == "" || p.Phase == fault.Before) || slices.Contains(entry.Phases, cmp.Or(p.Phase, fault.Before))
		if verb && phase && slices.Contains(entry.Actions, action) {
			return &entries[i]
		}
	}
	return nil
}

// How long rules make operations wait: the longest is longer than upstream's admission
// plugins wait for their informers, which is ten seconds.
var waits = []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second, 3 * time.Second, 11 * time.Second}

// maxWaiting is how long the rules of a plan make operations wait in all, at most. A
// start and most commands have a minute, in which a correct script is to pass.
const maxWaiting = 35 * time.Second

// waiting is how long a plan makes operations wait, as far as that adds up.
func waiting(plan fault.Plan) time.Duration {
	total := time.Duration(0)
	for _, rule := range plan {
		times := max(1, rule.Times)
		if strings.HasSuffix(rule.Point, "*") {
			times = 2 // they wait at the same time, such as the lists of all informers
		}
		total += time.Duration(times)*rule.By + rule.For
	}
	return total
}

// ruleOf generates a rule of a class about operations like that of a point.
func (g *PlanGenerator) ruleOf(random *rand.Rand, class Class, entry *fault.PointKind, p Point) fault.Rule {
	rule := fault.Rule{Optional: true, Action: fault.Action{Kind: fault.ActionKind(class)}, Match: g.matchOf(random, entry, p)}
	wait := waitAt(random, rule.Point)
	switch class {
	case Break:
		rule.Kind, rule.Nth, rule.Times = fault.Cancel, g.nth(random, p), 0
		if slices.Contains(entry.Actions, fault.Fail) && random.IntN(2) == 0 {
			rule.Kind, rule.With = fault.Fail, entry.Failures[random.IntN(len(entry.Failures))]
		}
	case Class(fault.Delay):
		rule.By = wait
	case Class(fault.Hold), Class(fault.Freeze):
		rule.For, rule.Times, rule.Nth = wait, 0, fault.Range{}
	case Class(fault.Fail), Class(fault.LoseReply):
		rule.With = entry.Failures[random.IntN(len(entry.Failures))]
	case Class(fault.Crash), Class(fault.Compact):
		rule.Times = 1
	}
	return rule
}

// matchOf chooses which operations like that of a point a rule is about.
func (g *PlanGenerator) matchOf(random *rand.Rand, entry *fault.PointKind, p Point) fault.Match {
	has := func(field string) bool { return slices.Contains(entry.Fields, field) }
	match := fault.Match{Point: p.Point}
	if p.Phase != fault.Before {
		match.Phase = p.Phase
	}
	if has("verb") {
		match.Verb = p.Verb
	}
	if has("resource") {
		match.Resource = p.Resource
	}
	if has("server") && random.IntN(2) == 0 {
		match.Server = p.Server
	}
	if has("name") && p.Name != "" && random.IntN(3) == 0 {
		match.Namespace, match.Name = p.Namespace, p.Name
	}
	if has("caller") && random.IntN(4) == 0 {
		match.Caller = p.Caller
	}
	if random.IntN(2) == 0 {
		match.Nth = g.nth(random, p)
	} else {
		match.Times = 1 + random.IntN(3)
	}
	if family, _, _ := strings.Cut(p.Point, "/"); slices.Contains(families, family) && random.IntN(3) == 0 {
		match = fault.Match{Point: family + "/*", Verb: match.Verb, Server: match.Server}
	}
	return match
}

// nth chooses the number of one operation of those that are like that of a point.
func (g *PlanGenerator) nth(random *rand.Rand, p Point) fault.Range {
	n := 1 + random.IntN(min(g.count[groupOf(p)], maxNth))
	return fault.Range{First: n, Last: n}
}

// waitAt chooses how long an operation of a point waits. A step of a server's life is
// mostly early enough by far: it changes the order of events if it waits for long.
func waitAt(random *rand.Rand, point string) time.Duration {
	family, _, _ := strings.Cut(point, "/")
	some := waits
	if slices.Contains(lifeFamilies, family) {
		some = waits[2:]
	}
	return some[random.IntN(len(some))]
}

// families are the families of points that a rule may be about as a whole: what happens
// there happens once or twice in a server's life, and at the same time.
var families = []string{"hook", "informer"}

// ParseClasses reads classes, separated by commas.
func ParseClasses(text string) ([]Class, error) {
	var classes []Class
	for _, name := range strings.Split(text, ",") {
		class := Class(strings.TrimSpace(name))
		if !slices.Contains(Classes(), class) {
			return nil, fmt.Errorf("no class of faults is called %q; there are %s", class, nearest.Either(Classes()))
		}
		if !slices.Contains(classes, class) {
			classes = append(classes, class)
		}
	}
	return classes, nil
}

// newRandom returns random numbers that a seed decides.
func newRandom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }
