package mutation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// SwitchPackage is the package that tells mutated source which mutant is on.
const SwitchPackage = "mutated.test/mutant"

// switched is how mutated source asks for its own mutant. The number is not known before all
// mutants are, so that edits hold a placeholder for it.
const switched = "mutant.On(\x00)"

// edit puts text around a span of a file. Edits nest, and never overlap otherwise, so any
// number of mutants can be written into one text.
type edit struct {
	start, end     int
	prefix, suffix string
}

// piece is a part of a text in which mutants are written.
type piece struct {
	text   string
	mutant int // index of the mutant that put it there, -1 for the file's own
}

// splice writes mutants into a file. number is the switch of each.
func splice(src []byte, clauseEnd int, mutants []Mutant, number func(i int) int) []piece {
	type event struct {
		at, order int
		piece     piece
	}
	var events []event
	outer := make([]int, len(mutants))
	for i := range outer {
		outer[i] = i
	}
	slices.SortStableFunc(outer, func(a, b int) int {
		x, y := mutants[a].edit, mutants[b].edit
		return cmp.Or(cmp.Compare(x.start, y.start), cmp.Compare(y.end, x.end))
	})
	for rank, i := range outer {
		fill := func(text string) piece { return piece{strings.ReplaceAll(text, "\x00", fmt.Sprint(number(i))), i} }
		e := mutants[i].edit
		// At one place, what ends there is closed, the innermost first, before anything begins.
		events = append(events, event{e.start, 1 + rank, fill(e.prefix)}, event{e.end, -1 - rank, fill(e.suffix)})
	}
	slices.SortStableFunc(events, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.order, b.order))
	})
	pieces := []piece{{string(src[:clauseEnd]), -1}}
	if len(mutants) > 0 {
		pieces = append(pieces, piece{fmt.Sprintf("; import mutant %q", SwitchPackage), -1})
	}
	at := clauseEnd
	for _, e := range events {
		pieces = append(pieces, piece{string(src[at:e.at]), -1}, e.piece)
		at = e.at
	}
	return append(pieces, piece{string(src[at:]), -1})
}

func join(pieces []piece) string {
	var text strings.Builder
	for _, p := range pieces {
		text.WriteString(p.text)
	}
	return text.String()
}
