package sim

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Search is how a bubble looks for an interleaving that fails. The seed decides what it draws.
type Search struct {
	// Strategy is one of Strategies; "" is random.
	Strategy string
	// Depth is that of the bugs that pct looks for: how many orders must hold between operations of
	// goroutines for one to show. 0 is DefaultDepth.
	Depth int
	// Bubble puts each test into a bubble of virtual time.
	Bubble bool
	// Leaks allows such a test to leave goroutines behind that wait for ever.
	Leaks bool
}

// DefaultDepth is the depth of a Search without one.
const DefaultDepth = 3

// BubbleStrategy is that of snowglobe test --bubble unless another is given. Of those that run a test once it finds
// most of what is known (docs/search.md).
const BubbleStrategy = "late"

// Strategies are those of a Search. With random a goroutine runs until it blocks, and then any other may be next.
// With the others it may also lose the processor at a choice point: before it takes or gives back a mutex, sends,
// receives, selects, closes, adds to a WaitGroup, waits for it or for a Cond, and after it has started a goroutine.
//
//   - surw: at each of the points any other goroutine may be next, one that still has many points to pass more
//     probably than one with few; a run before counts them (Zhao et al., Selectively Uniform Concurrency Testing,
//     2025). Every test runs twice.
//   - walk: at some of the points any other goroutine is next; how often is drawn for each seed.
//   - pct: goroutines have priorities, and the highest runs; at Depth-1 points that of the one that runs becomes
//     the lowest (Burckhardt et al., A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs, 2010).
//   - pos: each operation has a priority, and the highest is next; of two on the same object, the one that was
//     later draws anew (Yuan et al., Partial Order Aware Concurrency Sampling, 2018).
//   - late: as pos, but of three priorities the lowest is drawn for a goroutine that has just been started, has just
//     started another, or holds a mutex and takes one more. So others tend to come in between.
//   - swarm: each seed draws one of walk, pct and pos, and at which kinds of points it stops.
var Strategies = []string{"random", surw, "walk", "pct", "pos", BubbleStrategy, "swarm"}

const surw = "surw"

// The variables of the environment that a Search is passed on in, as overlay/points.go.txt reads them.
const (
	strategyVariable = "SNOWGLOBE_STRATEGY"
	depthVariable    = "SNOWGLOBE_DEPTH"
	bubbleVariable   = "SNOWGLOBE_BUBBLE"
	leaksVariable    = "SNOWGLOBE_LEAKS"
)

// GivenSearch is the Search in the environment.
func GivenSearch() Search {
	depth, _ := strconv.Atoi(os.Getenv(depthVariable)) // Environment has written it
	return Search{
		Strategy: os.Getenv(strategyVariable), Depth: depth,
		Bubble: os.Getenv(bubbleVariable) != "", Leaks: os.Getenv(leaksVariable) != "",
	}
}

// WithDefault is the Search with a strategy if it has a Bubble and none is given.
func (s Search) WithDefault() Search {
	if s.Bubble && s.Strategy == "" {
		s.Strategy = BubbleStrategy
	}
	return s
}

// Counts reports whether a run before has to count; see Counts.
func (s Search) Counts() bool { return s.Strategy == surw }

// Begin makes all calls of Seed from now on begin this Search, which has no Bubble. In an ordinary build it does
// nothing.
func (s Search) Begin() { choose(s.Strategy, uint32(s.depth())) }

// ParseSearch reads what String writes.
func ParseSearch(words ...string) (s Search, err error) {
	if len(words) > 0 {
		s.Strategy = words[0]
	}
	if len(words) > 1 {
		if s.Depth, err = strconv.Atoi(words[1]); err != nil || s.Depth < 1 {
			return Search{}, fmt.Errorf("the depth is a whole number from 1 on, not %q", words[1])
		}
	}
	return s, s.Check()
}

// String is the Strategy and, if it has one of its own, the Depth.
func (s Search) String() string {
	if s.Depth == 0 {
		return s.Strategy
	}
	return fmt.Sprint(s.Strategy, " ", s.Depth)
}

// Check reports what is wrong with a Search.
func (s Search) Check() error {
	switch {
	case s.Strategy != "" && !slices.Contains(Strategies, s.Strategy):
		return fmt.Errorf("there is no strategy %q; there are %s", s.Strategy, strings.Join(Strategies, ", "))
	case s.Depth < 0:
		return errors.New("the depth is from 1 on")
	case s.Depth > 0 && s.Strategy != "pct" && s.Strategy != "swarm":
		return errors.New("only the strategies pct and swarm have a depth")
	case s.Leaks && !s.Bubble:
		return errors.New("--allow-leaks is for tests in a bubble: add --bubble")
	}
	return nil
}

// StrategiesAlone are the Strategies that need no run before.
func StrategiesAlone() []string {
	return slices.DeleteFunc(slices.Clone(Strategies), func(name string) bool { return name == surw })
}

// CheckAlone reports what is wrong with a Search where no run before it counts.
func (s Search) CheckAlone() error {
	if s.Counts() {
		return errors.New("surw needs a run before that counts, which only snowglobe test makes")
	}
	return s.Check()
}

// Environment are the variables that pass the Search on to a program in sim mode.
func (s Search) Environment() []string {
	variables := []string{strategyVariable + "=" + s.Strategy, depthVariable + "=" + strconv.Itoa(s.depth())}
	if s.Bubble {
		variables = append(variables, bubbleVariable+"=1")
	}
	if s.Leaks {
		variables = append(variables, leaksVariable+"=1")
	}
	return variables
}

func (s Search) depth() int {
	if s.Depth == 0 {
		return DefaultDepth
	}
	return s.Depth
}

// flags are those of "snowglobe test" for the Search, each with a space behind it.
func (s Search) flags() (flags string) {
	if s.Strategy != "" {
		flags = "--strategy " + s.Strategy + " "
	}
	if s.Depth != 0 && s.depth() != DefaultDepth {
		flags += "--depth " + strconv.Itoa(s.Depth) + " "
	}
	if s.Bubble {
		flags += "--bubble "
	}
	if s.Leaks {
		flags += "--allow-leaks "
	}
	return flags
}
