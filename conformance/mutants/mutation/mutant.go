package mutation

import (
	"cmp"
	"fmt"
	"slices"
)

// A Mutant is one small change of upstream's source.
type Mutant struct {
	// ID names the mutant for good: file, function, operator and ordinal, as in
	// "apiserver/pkg/endpoints/handlers/update.go:UpdateResource:negate:1".
	ID string `json:"id"`
	// System is the system of the chain that the code is part of, as in "S12".
	System string `json:"system"`
	// Switch is the number that puts it on in the program that was built. It stays with the
	// mutant, so that others that come or go do not change the source of files.
	Switch int `json:"switch"`
	// Line of the file in which the change begins.
	Line int `json:"line"`
	// Change is what is changed, for people.
	Change string `json:"change"`

	edit edit
}

// Operator is a way to change source.
type Operator string

// The operators. ByHand is for mutants that people wrote.
const (
	Negate         Operator = "negate"
	Skip           Operator = "skip"
	Constant       Operator = "constant"
	DropReturn     Operator = "drop-return"
	SwapStatements Operator = "swap-statements"
	SwapArguments  Operator = "swap-arguments"
	AndOr          Operator = "and-or"
	Boundary       Operator = "boundary"
	ByHand         Operator = "by-hand"
)

// name gives the mutants of a file, which are in the order of their source, their IDs.
func name(file string, found []candidate) []Mutant {
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(a.edit.start, b.edit.start) })
	type place struct {
		function string
		operator Operator
	}
	count := map[place]int{}
	mutants := make([]Mutant, 0, len(found))
	for _, c := range found {
		at := place{c.function, c.operator}
		count[at]++
		mutants = append(mutants, Mutant{
			ID:   fmt.Sprintf("%s:%s:%s:%d", file, c.function, c.operator, count[at]),
			Line: c.line, Change: c.change, edit: c.edit,
		})
	}
	return mutants
}

// Number gives mutants their switches: those they had before, or else the lowest free ones.
func Number(mutants, before []Mutant) {
	had, used := map[string]int{}, map[int]bool{}
	for _, m := range before {
		had[m.ID] = m.Switch
	}
	for _, m := range mutants {
		used[had[m.ID]] = true
	}
	free := 1
	for i := range mutants {
		m := &mutants[i]
		if m.Switch = had[m.ID]; m.Switch != 0 {
			continue
		}
		for used[free] {
			free++
		}
		m.Switch, used[free] = free, true
	}
}
