package fault

// generation bounds how many identities a generation of occurrences remembers.
const generation = 1 << 17

// occurrences counts operations by the hash of their identity. It remembers two
// generations of identities: when the younger one is full it becomes the older
// one, and what was the older one is forgotten, which takes some MB at most. So an
// operation is counted right as long as fewer than 1<<17 others, each of a
// different identity, come between two of its occurrences; after more it may be
// the first again. Only the operations themselves decide what is forgotten, so
// that the same ones in the same order are counted the same in every run. Make it
// with newOccurrences.
type occurrences struct{ younger, older map[uint64]int }

func newOccurrences() occurrences { return occurrences{younger: map[uint64]int{}} }

// next returns which of the operations with an identity this one is, from 1.
func (o *occurrences) next(identity uint64) int {
	n, ok := o.younger[identity]
	if !ok {
		if len(o.younger) == generation {
			o.younger, o.older = make(map[uint64]int, generation), o.younger
		}
		n = o.older[identity]
	}
	o.younger[identity] = n + 1
	return n + 1
}
