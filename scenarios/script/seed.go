package script

import (
	"fmt"
	"strconv"
)

// SeedCommand is the name of the command that sets the seed of a script.
const SeedCommand = "seed"

// ReseedCommand is the name of the command after which another seed decides.
const ReseedCommand = "reseed"

// ParseSeed reads the argument of SeedCommand.
func ParseSeed(text string) (uint64, error) {
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("a seed is a whole number from 0 on, not %q", text)
	}
	return seed, nil
}

// Seed returns the seed that the script sets, and whether it sets one.
func (s Script) Seed() (uint64, bool) {
	seed, err := ParseSeed(s.setting(SeedCommand))
	return seed, err == nil
}

// setting returns the argument of a command that is among the first ones, which decide from the start;
// empty if it is not.
func (s Script) setting(command string) string {
	lines, _ := s.Commands() // mistakes are reported when the script runs
	for _, line := range lines {
		switch {
		case line.Words[0] != SeedCommand && line.Words[0] != ClockCommand || len(line.Words) != 2:
			return ""
		case line.Words[0] == command:
			return line.Words[1]
		}
	}
	return ""
}
