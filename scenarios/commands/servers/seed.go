package servers

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/pflag"
	utilrand "k8s.io/apimachinery/pkg/util/rand"

	"snowglobe.test/envtest/sim"
	"snowglobe.test/scenarios/engine"
	"snowglobe.test/scenarios/script"
)

func (s *Servers) Seed() engine.Command {
	return engine.Command{
		Name:    script.SeedCommand,
		Args:    "NUMBER [STRATEGY] [DEPTH]",
		Summary: "run the script with this seed, unless the command line gives another",
		Details: `It must be the first command of a script. "snowglobe run" then runs the script in sim
mode, as with --seed, where the seed decides everything: the script of a failure that
was found under a seed keeps that seed. A script with a seed runs in its own process.

A goroutine runs until it blocks, unless a strategy (` + strings.Join(sim.StrategiesAlone(), ", ") + `) says
otherwise: see "snowglobe test --help". pct and swarm can have a depth.`,
		Example:    "seed 7\nseed 7 pct 3",
		NoNegation: true,
		First:      true,
		Static:     checkSeed,
		Run:        func(context.Context, []string) error { return nil }, // the session began with it
	}
}

func (s *Servers) Reseed() engine.Command {
	return engine.Command{
		Name:    script.ReseedCommand,
		Args:    "NUMBER [STRATEGY] [DEPTH]",
		Summary: "let another seed decide what happens from here on",
		Details: `The script has a seed, with which its servers have started. "snowglobe explore" writes the
command where it begins to vary a script, so that runs differ in what comes after it alone. The
strategy is as for "seed", and random if none is named.`,
		Example:    "seed 1\nstart\nreseed 7",
		NoNegation: true,
		Needs:      s.Running,
		Static:     checkSeed,
		Run: func(_ context.Context, args []string) error {
			if s.config.Branch != nil {
				sim.Collect() // once, and not in each of the branches
				words, err := s.run.Branch(s.config.Branch)
				if err != nil || words == nil {
					return err
				}
				args, s.spent = words[1:], Spent{} // the time until now was spent in another process
			}
			seed, err := script.ParseSeed(args[0])
			if err != nil {
				return err
			}
			if err := s.search(args[1:]); err != nil {
				return err
			}
			if s.seed() == nil || s.run.RealTime() {
				return errors.New("there is no seed to change: the script needs one, and virtual time")
			}
			sim.Seed(seed) // no more than what follows in an ordinary build
			utilrand.Seed(int64(seed))
			s.plane.Faults().Reseed(seed)
			s.reseeded = &seed
			return nil
		},
	}
}

func checkSeed(_ *pflag.FlagSet, args []string) error {
	if _, err := script.ParseSeed(args[0]); err != nil {
		return engine.Misuse(err)
	}
	search, err := sim.ParseSearch(args[1:]...)
	if err == nil {
		err = search.CheckAlone()
	}
	return engine.Misuse(err)
}

// search begins the search that a command names, unless the command line names one. If neither does, it is
// that of the environment, as "snowglobe test" has it.
func (s *Servers) search(words []string) error {
	search, err := sim.ParseSearch(words...)
	if err != nil {
		return err
	}
	switch {
	case s.config.Search != sim.Search{}:
		search = s.config.Search
	case len(words) == 0:
		search = sim.GivenSearch()
	}
	search.Begin()
	return nil
}

// seed returns the seed of the run, nil for none.
func (s *Servers) seed() *uint64 {
	if s.reseeded != nil {
		return s.reseeded
	}
	if s.config.Seed != nil {
		return s.config.Seed
	}
	if seed, ok := s.run.Script.Seed(); ok {
		return &seed
	}
	return nil
}
