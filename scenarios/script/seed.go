package script

import (
	"fmt"
	"strconv"
)

// SeedCommand is the name of the command that sets the seed of a script.
const SeedCommand = "seed"

// ReseedCommand is the name of the command after which another seed decides.
const ReseedCommand = "reseed"

// ParseSeed reads the first argument of SeedCommand.
func ParseSeed(text string) (uint64, error) {
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("a seed is a whole number from 0 on, not %q", text)
	}
	return seed, nil
}

// Seed returns the seed that the script sets, and whether it sets one.
func (s Script) Seed() (uint64, bool) {
	words := s.setting(SeedCommand)
	if words == nil {
		return 0, false
	}
	seed, err := ParseSeed(words[0])
	return seed, err == nil
}

// Search returns what stands behind the number of the script's ReseedCommand, or else of its SeedCommand: how the
// seed chooses among interleavings.
func (s Script) Search() []string {
	lines, _ := s.Commands() // mistakes are reported when the script runs
	for _, line := range lines {
		if line.Words[0] == ReseedCommand && len(line.Words) > 1 {
			return line.Words[2:]
		}
	}
	return s.SeedSearch()
}

// SeedSearch returns what stands behind the number of the script's SeedCommand.
func (s Script) SeedSearch() []string {
	if words := s.setting(SeedCommand); words != nil {
		return words[1:]
	}
	return nil
}

// setting returns the arguments of a command that is among the first ones, which decide from the start;
// nil if it is not.
func (s Script) setting(command string) []string {
	lines, _ := s.Commands() // mistakes are reported when the script runs
	for _, line := range lines {
		switch {
		case line.Words[0] != SeedCommand && line.Words[0] != ClockCommand || len(line.Words) < 2:
			return nil
		case line.Words[0] == command:
			return line.Words[1:]
		}
	}
	return nil
}
