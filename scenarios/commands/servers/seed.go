package servers

import (
	"context"

	"github.com/spf13/pflag"

	"snowglobe.test/scenarios/engine"
	"snowglobe.test/scenarios/script"
)

func (s *Servers) Seed() engine.Command {
	return engine.Command{
		Name:  script.SeedCommand,
		Args:  "NUMBER",
		Least: 1, Most: 1,
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

// seed returns the seed of the run, nil for none.
func (s *Servers) seed() *uint64 {
	if s.config.Seed != nil {
		return s.config.Seed
	}
	if seed, ok := s.run.Script.Seed(); ok {
		return &seed
	}
	return nil
}
