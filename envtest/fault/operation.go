package fault

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"strings"
	"time"
)

// Operation is something that is about to happen at a point. The fields up to
// Caller identify it, and are the same in every run: no random names, addresses
// or times. A field that it does not have is empty.
type Operation struct {
	Point     string // such as "store/put"; the catalogue lists them
	Phase     Phase  // where in its life the operation is; "" is Before
	Server    string // the control plane or the replica
	Verb      string // where the catalogue says so
	Resource  string // with its group, such as "configmaps" or "deployments.apps"; of a request also "pods/status"
	Namespace string
	Name      string
	Key       string // in the store, the path of a request, or an address
	Caller    string // the user or the component

	// Occurrence counts operations of this identity, from 1. The Set sets it.
	Occurrence int
	// Revision is an event's, for Freeze: not identity, since it counts others' writes.
	Revision int64
	// Arrived is when a queued part of a stream came; a delay counts from then.
	Arrived time.Time
}

// Phase says where in its life an operation is.
type Phase string

// The phases.
const (
	Before Phase = "before" // it has not begun
	After  Phase = "after"  // it is done, and its answer is not yet sent
	Stream Phase = "stream" // a part of its answer is about to be sent
)

// String is the operation for people, such as "store/put configmaps default/a".
func (o Operation) String() string {
	words := []string{o.Point}
	if o.Phase != "" && o.Phase != Before {
		words = append(words, string(o.Phase))
	}
	name := o.Name
	if o.Namespace != "" {
		name = o.Namespace + "/" + o.Name
	}
	if name == "" && o.Resource == "" {
		name = o.Key
	}
	for _, w := range []string{o.Verb, o.Resource, name} {
		if w != "" {
			words = append(words, w)
		}
	}
	if o.Caller != "" {
		words = append(words, "by", o.Caller)
	}
	if o.Server != "" {
		words = append(words, "on", o.Server)
	}
	return strings.Join(words, " ")
}

// Priority is a number that only seed, identity and occurrence decide, spread evenly
// over uint64: the same in every process, on every machine, in every release.
func (o Operation) Priority(seed uint64) uint64 {
	var room [256]byte
	id := appendNumber(room[:0], seed)
	for _, s := range [...]string{
		o.Point, string(cmp.Or(o.Phase, Before)), o.Server, o.Verb, o.Resource, o.Namespace, o.Name, o.Key, o.Caller,
	} {
		id = appendText(id, s)
	}
	return hash(appendNumber(id, uint64(o.Occurrence)))
}

func appendNumber(to []byte, n uint64) []byte { return binary.LittleEndian.AppendUint64(to, n) }

// appendText adds a text and its length, so that neighbours do not run together.
func appendText(to []byte, s string) []byte { return append(appendNumber(to, uint64(len(s))), s...) }

// hash is FNV-1a and the finalizer of MurmurHash3, which spreads the low bits.
func hash(of []byte) uint64 {
	sum := fnv.New64a()
	_, _ = sum.Write(of) // it never fails
	h := sum.Sum64()
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// generation bounds how many identities a generation of occurrences remembers.
const generation = 1 << 17

// occurrences counts operations by the hash of their identity, in two
// generations of at most some MB: when the younger is full it becomes the older,
// and the older is forgotten. An operation is counted right if fewer than 1<<17
// others, all of different identities, come between two of its occurrences;
// after more it may be the first again. The operations alone decide what is
// forgotten, so equal runs count equally. Make it with newOccurrences.
type occurrences struct{ younger, older map[uint64]int }

func newOccurrences() occurrences { return occurrences{younger: map[uint64]int{}} }

// next returns which operation of its identity this is, from 1.
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
