package differential

import "math/rand/v2"

// Source gives the choices a sequence of operations is made of.
type Source interface {
	// Choose returns a number from 0 to n-1.
	Choose(n int) int
	// Done says that there are no more choices.
	Done() bool
}

// random is a Source of a number of steps.
type random struct {
	*rand.Rand
	left int
}

// FromSeed returns a Source of so many steps.
func FromSeed(seed uint64, steps int) Source {
	return &random{Rand: rand.New(rand.NewPCG(seed, 0)), left: steps}
}

// Choose implements Source.
func (r *random) Choose(n int) int { return r.IntN(n) }

// Done implements Source. It is asked once a step.
func (r *random) Done() bool {
	r.left--
	return r.left < 0
}
