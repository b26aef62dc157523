package differential

import "math/rand/v2"

// Source gives the choices a sequence of operations is made of.
type Source interface {
	// Choose returns a number from 0 to n-1.
	Choose(n int) int
	// Done says that there are no more choices.
	Done() bool
}

// Bytes is a Source that reads its choices from data.
type Bytes struct{ data []byte }

// FromBytes returns a Source of what data says.
func FromBytes(data []byte) *Bytes { return &Bytes{data: data} }

// Choose implements Source.
func (b *Bytes) Choose(n int) int {
	if len(b.data) == 0 {
		return 0
	}
	c := int(b.data[0])
	b.data = b.data[1:]
	return c % n
}

// Done implements Source.
func (b *Bytes) Done() bool { return len(b.data) == 0 }

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
