package mutation

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed systems.txt
var systemsText string

// Systems say which system of the chain a place in upstream's source is part of.
type Systems map[string]string

// OfChain are the systems of the chain, from systems.txt.
func OfChain() (Systems, error) { return ParseSystems(systemsText) }

// ParseSystems reads lines of a system and the places that are part of it: folders, files, or
// a file and a function. A system "-" is of code that is left out. Text after # is a comment.
func ParseSystems(text string) (Systems, error) {
	systems := Systems{}
	system := ""
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if line[0] != ' ' && line[0] != '\t' {
			system, words = words[0], words[1:]
		}
		for _, place := range words {
			if systems[place] != "" {
				return nil, fmt.Errorf("systems of mutants: %s is part of %s and of %s", place, systems[place], system)
			}
			systems[place] = system
		}
	}
	return systems, nil
}

// Of returns the system of a mutant by its ID, by the most specific line; empty if its code is
// left out.
func (s Systems) Of(id string) string {
	place := id
	for {
		if system, ok := s[place]; ok {
			return strings.TrimPrefix(system, "-")
		}
		i := strings.LastIndexAny(place, "/:")
		if i < 0 {
			return ""
		}
		place = place[:i]
	}
}
