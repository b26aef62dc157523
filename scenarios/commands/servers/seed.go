package servers

import (
	"context"
	"errors"

	"github.com/spf13/pflag"
	utilrand "k8s.io/apimachinery/pkg/util/rand"

	"snowglobe.test/envtest/sim"
	"snowglobe.test/scenarios/engine"
	"snowglobe.test/scenarios/script"
)

func (s *Servers) Seed() engine.Command {
	return engine.Command{
		Name:    script.SeedCommand,
		Args:    "NUMBER",
		Summary: "run the script with this seed, unless the command line gives another",
		Details: `It must be the first command of a script. "snowglobe run" then runs the script in sim
mode, as with --seed, where the seed decides everything: the script of a failure that
was found under a seed keeps that seed. A script with a seed runs in its own process.`,
		Example:    "seed 7",
		NoNegation: true,
		First:      true,
		Static: func(_ *pflag.FlagSet, args []string) error {
			_, err := script.ParseSeed(args[0])
			return engine.Misuse(err)
		},
		Run: func(context.Context, []string) error { return nil }, // the session began with it
	}
}

func (s *Servers) Reseed() engine.Command {
	return engine.Command{
		Name:    script.ReseedCommand,
		Args:    "NUMBER",
		Summary: "let another seed decide what happens from here on",
		Details: `The script has a seed, with which its servers have started. "snowglobe explore" writes the
command where it begins to vary a script, so that runs differ in what comes after it alone.`,
		Example:    "seed 1\nstart\nreseed 7",
		NoNegation: true,
		Needs:      s.Running,
		Static: func(_ *pflag.FlagSet, args []string) error {
			_, err := script.ParseSeed(args[0])
			return engine.Misuse(err)
		},
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
