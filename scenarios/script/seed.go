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
	text, ok := s.setting(SeedCommand)
	if !ok {
		return 0, false
	}
	seed, err := ParseSeed(text)
	return seed, err == nil
}

// setting returns the argument of a command that is among the first ones, which decide from the start.
func (s Script) setting(command string) (argument string, ok bool) {
	lines, _ := s.Commands() // mistakes are reported when the script runs
	for _, line := range lines {
		switch {
		case line.Words[0] != SeedCommand && line.Words[0] != ClockCommand || len(line.Words) != 2:
			return "", false
		case line.Words[0] == command:
			return line.Words[1], true
		}
	}
	return "", false
}
