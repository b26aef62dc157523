package script

import (
	"fmt"
	"strconv"
)

// SeedCommand is the name of the command that sets the seed of a script.
const SeedCommand = "seed"

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
	lines, _ := s.Commands() // mistakes are reported when the script runs
	if len(lines) == 0 || lines[0].Words[0] != SeedCommand || len(lines[0].Words) != 2 {
		return 0, false
	}
	seed, err := ParseSeed(lines[0].Words[1])
	return seed, err == nil
}
