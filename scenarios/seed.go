package scenarios

import (
	"context"
	"errors"
	"fmt"
	"strconv"
)

var seedCommand = command{
	name:  seedName,
	args:  "NUMBER",
	least: 1, most: 1,
	summary: "run the script with this seed, unless the command line gives another",
	details: `It must be the first command of a script. "snowglobe run" then runs the script in sim
mode, as with --seed, where the seed decides everything: the script of a failure that
was found under a seed keeps that seed. A script with a seed runs in its own process.`,
	example:    "seed 7",
	noNegation: true,
	static: func(args []string) error {
		_, err := parseSeed(args[0])
		return err
	},
	run: func(context.Context, *session, []string) error { return nil }, // the session began with it
}

const seedName = "seed"

var errSeedLate = errors.New("seed is the first command of a script, since it decides everything from the start")

func parseSeed(text string) (uint64, error) {
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: a seed is a whole number from 0 on, not %q", errUsage, text)
	}
	return seed, nil
}

// Seed returns the seed that the script sets, and whether it sets one.
func (s Script) Seed() (uint64, bool) {
	lines, _ := s.scriptLines() // mistakes are reported when the script runs
	if len(lines) == 0 || lines[0].words[0] != seedName || len(lines[0].words) != 2 {
		return 0, false
	}
	seed, err := parseSeed(lines[0].words[1])
	return seed, err == nil
}

// seed returns the seed of the run, nil for none.
func (s *session) seed() *uint64 {
	if s.opts.Seed != nil {
		return s.opts.Seed
	}
	if seed, ok := s.script.Seed(); ok {
		return &seed
	}
	return nil
}
