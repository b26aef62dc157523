package differential

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
)

// shownOperations is how much of a sequence is shown when it ends in a difference.
const shownOperations = 40

// Difference is what made a comparison fail.
type Difference struct {
	// Operations are all operations up to the one with different answers.
	Operations []string
	// Diff shows the answers, the first system's with a minus.
	Diff string
}

func (d *Difference) Error() string {
	ops := d.Operations
	skipped := ""
	if n := len(ops) - shownOperations; n > 0 {
		ops, skipped = ops[n:], fmt.Sprintf("(%d operations before)\n", n)
	}
	return fmt.Sprintf("the answers to the last operation differ:\n%s%s\n%s", skipped, strings.Join(ops, "\n"), d.Diff)
}

// answer is what a system said to an operation.
type answer struct {
	message proto.Message
	err     string
}

// Session compares any number of sequences on the same systems.
type Session struct {
	systems        []*System
	rev, compacted int64
}

// NewSession returns a Session with systems that no other client writes to and
// whose stores are empty and at their first revision.
func NewSession(systems ...*System) *Session {
	for _, s := range systems {
		s.watches, s.granted = make(map[int]*watch), make(map[int64]int64)
	}
	return &Session{systems: systems, rev: 1, compacted: -1}
}

// run is a sequence being done.
type run struct {
	generator
	ctx     context.Context
	systems []*System
	done    []string
	next    int // id of the next watch
	open    []int
	leased  bool // whether the sequence has leases
}

// Compare empties the stores, does a sequence of operations on every system
// until src is done, and then compares what is left. It returns how many
// operations were done, and a *Difference if two systems answered differently.
func (se *Session) Compare(ctx context.Context, src Source) (int, error) {
	r := &run{
		generator: generator{Source: src, rev: se.rev, compacted: se.compacted},
		ctx:       ctx, systems: se.systems,
	}
	defer func() { se.rev, se.compacted = r.rev, r.compacted }()
	defer r.cancelWatches()
	if err := r.empty(); err != nil {
		return len(r.done), err
	}
	r.leased = r.one(2)
	for !src.Done() {
		if err := ctx.Err(); err != nil {
			return len(r.done), err
		}
		if err := r.step(); err != nil {
			return len(r.done), err
		}
	}
	return len(r.done), r.finish()
}

// empty removes everything from the last sequence except the revision.
func (r *run) empty() error {
	if r.rev == 1 {
		return nil
	}
	for slot := range leaseSlots {
		if r.systems[0].leases[slot] != 0 {
			if err := r.revokeSlot(slot); err != nil {
				return err
			}
		}
	}
	err := r.do(operation{"delete everything", func(*System) clientv3.Op {
		return clientv3.OpDelete("\x00", clientv3.WithFromKey())
	}})
	if err != nil {
		return err
	}
	return r.compactAt(r.rev)
}

// step does one operation.
func (r *run) step() error {
	r.nested = false
	switch kind := r.Choose(64); {
	case kind < 14:
		return r.do(r.get(false))
	case kind < 28:
		return r.do(r.put())
	case kind < 32:
		return r.do(r.del())
	case kind < 46:
		r.nested = true
		return r.do(r.txn(2))
	case kind < 49:
		return r.stream(r.get(true))
	case kind < 50:
		return r.compact()
	case kind < 53 && r.leased:
		return r.grant()
	case kind < 54 && r.leased:
		return r.revoke()
	case kind < 59 && r.leased:
		return r.lookAtLeases()
	case kind < 59:
		return r.do(everythingAt(r.revision()))
	case kind < 62:
		return r.watch()
	case kind < 63:
		return r.cancelWatch()
	default:
		return r.do(r.put())
	}
}

// each asks every system and compares the answers.
func (r *run) each(text string, ask func(s *System) (proto.Message, error)) error {
	r.done = append(r.done, text)
	var first answer
	for i, s := range r.systems {
		m, err := ask(s)
		a := answer{}
		if err != nil {
			a.err = fmt.Sprintf("%T %v", err, err)
		} else {
			a.message = s.normal(m)
		}
		if i == 0 {
			first = a
			continue
		}
		if first.err == a.err && (first.message == nil || proto.Equal(first.message, a.message)) {
			continue
		}
		return r.differ(r.systems[0].Name+" and "+s.Name, first, a)
	}
	if h, ok := first.message.(interface{ GetHeader() *pb.ResponseHeader }); ok {
		r.rev = max(r.rev, h.GetHeader().GetRevision())
	}
	return nil
}

func (r *run) differ(who string, a, b any) error {
	return &Difference{
		Operations: r.done,
		Diff:       who + ":\n" + cmp.Diff(a, b, protocmp.Transform(), cmp.AllowUnexported(answer{})),
	}
}

// do does a range, put, delete or transaction.
func (r *run) do(o operation) error {
	return r.each(o.text, func(s *System) (proto.Message, error) {
		resp, err := s.Client.Do(r.ctx, o.op(s))
		switch {
		case err != nil:
			return nil, err
		case resp.Get() != nil:
			return (*pb.RangeResponse)(resp.Get()), nil
		case resp.Put() != nil:
			return (*pb.PutResponse)(resp.Put()), nil
		case resp.Del() != nil:
			return (*pb.DeleteRangeResponse)(resp.Del()), nil
		default:
			return (*pb.TxnResponse)(resp.Txn()), nil
		}
	})
}

// stream does a range as a stream and compares the whole of it.
func (r *run) stream(o operation) error {
	return r.each("stream "+o.text, func(s *System) (proto.Message, error) {
		op := o.op(s)
		same := func(to *clientv3.Op) { *to = op }
		chunks, err := s.Client.GetStream(r.ctx, string(op.KeyBytes()), same)
		if err != nil {
			return nil, err
		}
		resp, err := clientv3.GetStreamToGetResponse(chunks)
		if err != nil {
			return nil, err
		}
		return (*pb.RangeResponse)(resp), nil
	})
}

// compact compacts once every watch has seen everything: in etcd it depends on
// timing whether a lagging watch is cancelled.
func (r *run) compact() error {
	rev := r.rev - int64(r.Choose(8))
	if r.one(8) {
		rev = r.revision()
	}
	if err := r.fence(); err != nil {
		return err
	}
	return r.compactAt(rev)
}

func (r *run) compactAt(rev int64) error {
	err := r.each(fmt.Sprint("compact ", rev), func(s *System) (proto.Message, error) {
		resp, err := s.Client.Compact(r.ctx, rev, clientv3.WithCompactPhysical())
		return (*pb.CompactionResponse)(resp), err
	})
	if rev <= r.rev {
		r.compacted = max(r.compacted, rev)
	}
	return err
}

// everythingAt reads all keys at a revision.
func everythingAt(rev int64) operation {
	return operation{fmt.Sprint("get everything at ", rev), func(*System) clientv3.Op {
		return clientv3.OpGet("\x00", clientv3.WithFromKey(), clientv3.WithRev(rev))
	}}
}

// finish compares what is left: every readable revision, and what the watches saw.
func (r *run) finish() error {
	if err := r.fence(); err != nil {
		return err
	}
	for rev := max(r.compacted, 1); rev <= r.rev; rev++ {
		if err := r.do(everythingAt(rev)); err != nil {
			return err
		}
	}
	return nil
}
