//go:build soak

package soak_test

import (
	"context"
	"errors"
	"flag"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/storage/cluster"
	"snowglobe.test/envtest/trace"
	"snowglobe.test/envtest/virtualtime"
)

var ruleStep = flag.Int("rule-step", 40, "run each rule of the table whose number is a multiple of this; 1 is the whole table")

// moment is when a rule begins.
type moment string

const (
	boot     moment = "boot"     // before the start
	steady   moment = "steady"   // when all is ready, and clients are at work
	stopping moment = "stopping" // just before Stop
)

// ruleRow is one rule of the table.
type ruleRow struct {
	rule string
	kind fault.PointKind
}

// realTime says whether what the point is about needs sockets, which stand outside
// virtual time: of servers that the API server calls, and of the etcd that has a
// leader to lose.
func (r *ruleRow) realTime() bool {
	return r.losesLeader() || slices.Contains([]string{"webhook/<webhook>", "apiservice/<apiservice>", "egress/<network>", "auth/certificate"}, r.kind.Name)
}

func (r *ruleRow) losesLeader() bool { return strings.HasPrefix(r.rule, string(fault.LoseLeader)) }

// ruleTable has all points with all actions and all errors. Points of the life of a
// server are there one by one as well.
func ruleTable(t *testing.T) (rows []ruleRow) {
	named := lifePoints(t)
	for _, kind := range fault.Points() {
		for _, point := range append([]string{anyOf(kind)}, named[lifeOf(kind.Name, kind.Verbs)]...) {
			for _, action := range kind.Actions {
				for _, rule := range ruleTexts(kind, point, action) {
					rows = append(rows, ruleRow{rule, kind})
				}
			}
		}
	}
	return rows
}

// anyOf is the point, or the pattern, of all operations of an entry.
func anyOf(kind fault.PointKind) string {
	before, _, open := strings.Cut(kind.Name, "<")
	if !open {
		return kind.Name
	}
	return before + "*"
}

// ruleTexts are the rules of one action at one point.
func ruleTexts(kind fault.PointKind, point string, action fault.ActionKind) []string {
	rule := string(action) + " " + point
	if len(kind.Phases) > 0 {
		rule += " phase=" + string(kind.Phases[0])
	}
	if n := len(kind.Verbs); n == 1 { // else it is about all of them
		rule += " verb=" + kind.Verbs[0]
	}
	switch action {
	case fault.Fail:
		var rules []string
		for _, failure := range kind.Failures {
			rules = append(rules, rule+" with="+string(failure))
		}
		return rules
	case fault.Delay:
		rule += " by=3s"
	case fault.LoseLeader:
		rule += " times=3" // each is an election, in real time
	}
	return []string{rule}
}

// lifeOf names an entry whose points are hooks, signals or stages.
func lifeOf(name string, verbs []string) string {
	return strings.Join(append([]string{name}, verbs...), " ")
}

// lifePoints are the points of a server's life, by lifeOf, sorted.
func lifePoints(t *testing.T) map[string][]string {
	points := map[string][]string{}
	add := func(point string, verbs ...string) {
		family, _, _ := strings.Cut(point, "/")
		life := lifeOf(family+"/<"+family+">", verbs)
		if !slices.Contains(points[life], point) {
			points[life] = append(points[life], point)
		}
	}
	require.NoError(t, virtualtime.Bubble(func() error {
		cp, err := envtest.Launch(context.Background())
		if err != nil {
			return err
		}
		defer func() {
			for _, rec := range cp.Trace().Records() {
				switch e := rec.Event.(type) {
				case trace.Stage:
					add("stage/" + e.Name)
				case trace.Signal:
					add("signal/" + e.Name)
				case trace.Hook:
					add("hook/"+e.Name, string(e.Kind))
				}
			}
		}()
		return cp.Stop(context.Background())
	}))
	for _, of := range points {
		slices.Sort(of)
	}
	return points
}

// TestRules has each rule at each moment of a control plane's life: start, use and
// stop end in time, nothing is left, and an error says which rule it is because of.
//
//	go test -tags soak ./envtest/soak -run TestRules -rule-step 1 -timeout 3h
func TestRules(t *testing.T) {
	var mu sync.Mutex
	fired := map[string]int{} // by rule
	t.Run("table", func(t *testing.T) {
		for i, row := range ruleTable(t) {
			if i%*ruleStep != 0 {
				continue
			}
			for _, at := range []moment{boot, steady, stopping} {
				t.Run(strings.ReplaceAll(row.rule, "/", "|")+" "+string(at), func(t *testing.T) {
					if !row.realTime() {
						t.Parallel()
					}
					times := row.run(t, at)
					mu.Lock()
					defer mu.Unlock()
					fired[row.rule] += times
				})
			}
		}
	})
	for rule, times := range fired {
		assert.NotZero(t, times, "%q never fired, at no moment", rule)
	}
}

// often makes the server do every second what it does every few minutes.
var often = envtest.WithFlags("--etcd-count-metric-poll-period=1s", "--etcd-compaction-interval=1s")

// maxLife is more than what the timeouts of a start, of use and of a stop add up to.
const maxLife = 6 * time.Minute

// run has the rule at a moment, and returns how often it fired.
func (r *ruleRow) run(t *testing.T, at moment) int {
	d := &disturbance{rule: r.rule + " optional", at: at, options: []envtest.Option{often}}
	begun := time.Now()
	if r.realTime() {
		before := goleak.IgnoreCurrent()
		d.options = append(d.options, envtest.WithListener("127.0.0.1:0"))
		if r.losesLeader() {
			store, err := cluster.New(cluster.Config{})
			require.NoError(t, err)
			d.options = append(d.options, envtest.WithStore(store))
		}
		d.outside = newOutsider()
		d.run()
		d.outside.Close()
		goleak.VerifyNone(t, before)
	} else {
		assert.NoError(t, virtualtime.Bubble(func() error { d.run(); return nil }))
	}
	t.Logf("fired %d times, %s, %s on the wall; start: %v; stop: %v; crash: %v", d.fired, d.lasted, time.Since(begun).Round(time.Millisecond), d.startErr, d.stopErr, d.crash)
	assert.Less(t, d.lasted, maxLife)
	for what, err := range map[string]error{"start": d.startErr, "stop": d.stopErr, "crash": d.crash} {
		if err == nil {
			continue
		}
		assert.NotContains(t, err.Error(), "have not ended", "what %s left", what)
		assert.Contains(t, err.Error(), r.rule, "why %s failed", what)
	}
	if d.startErr != nil || d.stopErr != nil || d.crash != nil {
		assert.NotZero(t, d.fired, "an error without the rule")
	}
	return d.fired
}

// disturbance is a life of a control plane with a rule.
type disturbance struct {
	rule    string
	at      moment
	options []envtest.Option
	outside *outsider // nil in virtual time

	mu                       sync.Mutex
	fired                    int
	lasted                   time.Duration
	startErr, stopErr, crash error
}

func (d *disturbance) run() {
	begun := time.Now()
	defer func() { d.lasted = time.Since(begun) }()
	options := append(d.options, envtest.WithObserver(d.observe))
	if d.at == boot {
		options = append(options, envtest.WithFaults(d.rule))
	}
	ctx := context.Background()
	cp, err := envtest.Launch(ctx, options...)
	if err != nil {
		d.startErr = err
		return
	}
	if d.at != boot {
		_, err = cp.Faults().Inject(d.rule)
	}
	if d.at != stopping && err == nil {
		atMost := 20 * time.Second
		if d.outside != nil {
			atMost = 6 * time.Second
		}
		use(ctx, cp, atMost, d.outside)
	}
	d.stopErr, d.crash = errors.Join(err, cp.Stop(ctx)), cp.Err()
}

// observe counts what the rule does.
func (d *disturbance) observe(rec trace.Record) {
	if f, ok := rec.Event.(trace.Fault); ok && f.Rule == d.rule && f.Phase != trace.Released {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.fired++
	}
}
