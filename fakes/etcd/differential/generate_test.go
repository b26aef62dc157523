package differential

import (
	"fmt"
	"math/rand/v2"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

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

// The keys and values of the operations: few, so that operations meet.
var (
	keys   = []string{"a", "b", "c", "aa", "ab", "ab/x", "b\x00", "\x00", "\xff", "\xff\xff", "d"}
	ends   = []string{"", "b", "c", "ab0", "b\x01", "\x00", "\x01", "\xff", "\xff\xff", "zz"}
	values = []string{"", "1", "2", "10", "x"}
)

// generator turns the choices of a source into operations.
type generator struct {
	Source
	rev, compacted int64 // the current and the compact revision
	nested         bool  // what is made is part of a transaction
}

func (g *generator) pick(list []string) string { return list[g.Choose(len(list))] }

// one returns true once in n times.
func (g *generator) one(n int) bool { return g.Choose(n) == n-1 }

// revision returns one at or around the interesting ones.
func (g *generator) revision() int64 {
	switch g.Choose(8) {
	case 0:
		return g.rev - int64(g.Choose(4))
	case 1:
		return g.rev - int64(g.Choose(32))
	case 2:
		return g.rev + 1
	case 3:
		return g.compacted + int64(g.Choose(3)) - 1
	case 4:
		return -1 - int64(g.Choose(2))
	default:
		return 0
	}
}

// operation has its lease slots still open: the ids of leases differ between systems.
type operation struct {
	text string
	op   func(s *System) clientv3.Op
}

// spanOption returns the options of a range that begins at key.
func (g *generator) spanOption() (string, []clientv3.OpOption) {
	switch g.Choose(4) {
	case 0:
		return "", nil
	case 1:
		return " prefix", []clientv3.OpOption{clientv3.WithPrefix()}
	case 2:
		return " from-key", []clientv3.OpOption{clientv3.WithFromKey()}
	default:
		end := g.pick(ends)
		return fmt.Sprintf(" end=%q", end), []clientv3.OpOption{clientv3.WithRange(end)}
	}
}

// get returns a range with any of its options, or a stream with those options that
// work in etcd 3.7.3: a stream with a sort target but no order sorts each chunk,
// continues after the chunk's last key, and so leaves keys out.
func (g *generator) get(streamed bool) operation {
	key := g.pick(keys)
	text, opts := g.spanOption()
	text = fmt.Sprintf("get %q%s", key, text)
	add := func(name string, value any, opt clientv3.OpOption) {
		text += fmt.Sprintf(" %s=%v", name, value)
		opts = append(opts, opt)
	}
	if rev := g.revision(); rev != 0 {
		add("rev", rev, clientv3.WithRev(rev))
	}
	if g.one(3) {
		limit := int64(g.Choose(5)) - 1
		add("limit", limit, clientv3.WithLimit(limit))
	}
	if g.one(6) {
		add("keys-only", true, clientv3.WithKeysOnly())
	}
	if g.one(8) {
		add("count-only", true, clientv3.WithCountOnly())
	}
	if g.one(8) {
		add("serializable", true, clientv3.WithSerializable())
	}
	rare := 1
	if streamed {
		rare = 8
	}
	if g.one(3 * rare) {
		target, order := clientv3.SortTarget(g.Choose(5)), clientv3.SortOrder(g.Choose(3))
		if streamed && order == clientv3.SortNone {
			target = clientv3.SortByKey
		}
		add("sort", fmt.Sprint(target, "/", order), clientv3.WithSort(target, order))
	}
	if g.one(4 * rare) {
		bounds := []func(int64) clientv3.OpOption{
			clientv3.WithMinModRev, clientv3.WithMaxModRev, clientv3.WithMinCreateRev, clientv3.WithMaxCreateRev,
		}
		which, rev := g.Choose(4), g.revision()
		add(fmt.Sprint("bound", which), rev, bounds[which](rev))
	}
	return operation{text, func(*System) clientv3.Op { return clientv3.OpGet(key, opts...) }}
}

// put returns a put with any of its options.
func (g *generator) put() operation {
	key, value := g.pick(keys), g.pick(values)
	var opts []clientv3.OpOption
	text := ""
	if g.one(4) {
		opts = append(opts, clientv3.WithPrevKV())
		text += " prev-kv"
	}
	if g.one(8) {
		opts = append(opts, clientv3.WithIgnoreValue())
		text += " ignore-value"
		if !g.one(8) {
			value = ""
		}
	}
	slot := -1
	switch g.Choose(8) {
	case 5, 6:
		slot = g.Choose(leaseSlots)
		text += fmt.Sprint(" lease=", slot)
	case 7:
		opts = append(opts, clientv3.WithIgnoreLease())
		text += " ignore-lease"
		if g.one(8) {
			slot = 0
		}
	}
	text = fmt.Sprintf("put %q %q%s", key, value, text)
	return operation{text, func(s *System) clientv3.Op {
		opts := opts
		if slot >= 0 {
			opts = append(opts[:len(opts):len(opts)], clientv3.WithLease(s.lease(slot)))
		}
		return clientv3.OpPut(key, value, opts...)
	}}
}

// del returns a delete with any of its options, but in a transaction not of all
// keys from one on: the check that no key is both put and deleted overlooks those,
// and etcd 3.7.3 panics (a put that keeps the value of a key deleted before it) or
// loses keys (one deleted and put in a revision that is then compacted).
func (g *generator) del() operation {
	key := g.pick(keys)
	text, opts := g.spanOption()
	if op := clientv3.OpDelete(key, opts...); g.nested && string(op.RangeBytes()) == "\x00" {
		text, opts = "", nil
	}
	if g.one(3) {
		opts = append(opts, clientv3.WithPrevKV())
		text += " prev-kv"
	}
	return operation{fmt.Sprintf("delete %q%s", key, text), func(*System) clientv3.Op {
		return clientv3.OpDelete(key, opts...)
	}}
}

// compare is a condition of a transaction.
type compare struct {
	text string
	cmp  func(s *System) clientv3.Cmp
}

func (g *generator) compare() compare {
	key, sign := g.pick(keys), []string{"=", "!=", ">", "<"}[g.Choose(4)]
	var text string
	var make func(s *System) clientv3.Cmp
	number := int64(g.Choose(4))
	switch g.Choose(5) {
	case 0:
		text = fmt.Sprintf("version %s %d", sign, number)
		make = func(*System) clientv3.Cmp { return clientv3.Compare(clientv3.Version(key), sign, number) }
	case 1:
		rev := g.rev - number
		text = fmt.Sprintf("mod %s %d", sign, rev)
		make = func(*System) clientv3.Cmp { return clientv3.Compare(clientv3.ModRevision(key), sign, rev) }
	case 2:
		rev := g.rev - number
		text = fmt.Sprintf("create %s %d", sign, rev)
		make = func(*System) clientv3.Cmp { return clientv3.Compare(clientv3.CreateRevision(key), sign, rev) }
	case 3:
		value := g.pick(values)
		text = fmt.Sprintf("value %s %q", sign, value)
		make = func(*System) clientv3.Cmp { return clientv3.Compare(clientv3.Value(key), sign, value) }
	default:
		// Ids differ between systems, so only equality means the same in all.
		sign := []string{"=", "!="}[g.Choose(2)]
		text = fmt.Sprintf("lease %s slot %d", sign, number)
		make = func(s *System) clientv3.Cmp {
			return clientv3.Compare(clientv3.LeaseValue(key), sign, s.lease(int(number)))
		}
	}
	end := ""
	if g.one(4) {
		end = g.pick(ends)
	}
	return compare{fmt.Sprintf("%q..%q %s", key, end, text), func(s *System) clientv3.Cmp {
		return make(s).WithRange(end)
	}}
}

// txn returns a transaction, nested up to depth.
func (g *generator) txn(depth int) operation {
	var compares []compare
	var branches [2][]operation
	for range g.Choose(3) {
		compares = append(compares, g.compare())
	}
	for b := range branches {
		for range g.Choose(4) {
			branches[b] = append(branches[b], g.inTxn(depth))
		}
	}
	var text strings.Builder
	text.WriteString("txn if(")
	for _, c := range compares {
		text.WriteString(c.text + "; ")
	}
	for b, name := range []string{") then(", ") else("} {
		text.WriteString(name)
		for _, o := range branches[b] {
			text.WriteString(o.text + "; ")
		}
	}
	text.WriteString(")")
	return operation{text.String(), func(s *System) clientv3.Op {
		var cmps []clientv3.Cmp
		for _, c := range compares {
			cmps = append(cmps, c.cmp(s))
		}
		var ops [2][]clientv3.Op
		for b := range branches {
			for _, o := range branches[b] {
				ops[b] = append(ops[b], o.op(s))
			}
		}
		return clientv3.OpTxn(cmps, ops[0], ops[1])
	}}
}

func (g *generator) inTxn(depth int) operation {
	switch kind := g.Choose(8); {
	case kind < 2:
		return g.get(false)
	case kind < 5:
		return g.put()
	case kind < 6 || depth == 0:
		return g.del()
	default:
		return g.txn(depth - 1)
	}
}
