package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"

	"snowglobe.test/conformance/engine"
	"snowglobe.test/conformance/store"
	"snowglobe.test/fakes/etcd"
)

// defects are what stores have done wrong, or could, each with a case that must find it and
// a part of what that says.
var defects = []struct {
	name, found, says string
	defect
}{
	{"lost event", "watch/every-event-once-and-in-order", "should be of revision", defect{events: once(20, lose)}},
	{"doubled event", "watch/every-event-once-and-in-order", "should be of revision", defect{events: once(20, double)}},
	{"reordered events", "watch/every-event-once-and-in-order", "should be of revision", defect{events: late}},
	{"event lost between history and now", "watch/no-gap-between-history-and-now", "should be of revision", defect{events: once(300, lose)}},
	{"event lost by one that resumes", "watch/resumed-one-misses-nothing", "should be of revision", defect{create: func(in *pb.WatchCreateRequest) { in.StartRevision++ }}},
	{"history that is not replayed", "watch/replays-history", "did not come within", defect{create: func(in *pb.WatchCreateRequest) { in.StartRevision = 0 }}},
	{"events of other keys", "watch/prefix-has-only-its-keys", "podsx/a", defect{create: func(in *pb.WatchCreateRequest) {
		in.Key = in.Key[:len(in.Key)-1]
		in.RangeEnd = append(slices.Clone(in.Key[:len(in.Key)-1]), in.Key[len(in.Key)-1]+1)
	}}},
	{"deletion that is told as an update", "watch/event-tells-what-happened", "want DELETE", defect{events: each(func(e *mvccpb.Event) { e.Type = mvccpb.PUT })}},
	{"creation that is told as an update", "watch/event-tells-what-happened", "want CREATE", defect{events: each(func(e *mvccpb.Event) { e.Kv.CreateRevision-- })}},
	{"deletion without the last value", "watch/deletion-has-the-last-value", "with nothing before", defect{events: each(func(e *mvccpb.Event) { e.PrevKv = nil })}},
	{"event of another revision", "txn/delete-has-a-revision", "the revision of the event", defect{events: each(func(e *mvccpb.Event) { e.Kv.ModRevision++ })}},
	{"compacted watch that ends without a reason", "watch/compacted-start-is-refused", "want the error", defect{events: always(func(out *pb.WatchResponse) {
		out.CompactRevision, out.CancelReason = 0, ""
	})}},

	{"progress before events", "progress/is-never-before-an-event", "and after that came", defect{events: afterProgress}},
	{"progress before events, as a cache sees it", "progress/makes-cached-reads-consistent", "would answer a consistent read with that", defect{events: afterProgress}},
	{"progress before history", "progress/waits-for-history", "is missing at the end", defect{events: afterCreation}},
	{"no progress", "progress/comes-when-asked-for", "was told no progress", defect{events: unlessProgress}},
	{"no progress, so that reads wait", "progress/reaches-every-watch", "a consistent read from a cache would wait", defect{events: unlessProgress}},
	{"progress that stands still", "progress/reaches-writes-elsewhere", "a consistent read from a cache would wait", defect{events: stuck}},
	{"progress of the future", "progress/is-a-revision-of-the-store", "progress told revision", defect{events: always(func(out *pb.WatchResponse) {
		if isProgress(out) {
			out.Header.Revision += 1000
		}
	})}},
	{"progress of revision 0", "progress/is-a-revision-of-the-store", "a consistent read from a cache would wait", defect{events: always(func(out *pb.WatchResponse) {
		if isProgress(out) {
			out.Header.Revision = 0
		}
	})}},

	{"stale linearizable read", "consistency/others-read-what-is-written", "a read after that by another client", defect{get: stale}},
	{"stale linearizable reads, of a history", "consistency/histories-are-linearizable", "no order of them explains", defect{get: stale}},
	{"stale list", "consistency/lists-are-of-now", "a list after that by another client", defect{get: stale}},
	{"list of two moments", "consistency/list-is-one-moment", "b is written before a", defect{get: torn}},
	{"revision that goes back", "consistency/revisions-do-not-go-back", "and the next one", defect{get: backAndForth()}},
	{"read of an old revision", "kv/read-tells-the-stores-revision", "the revision that a read", defect{get: got(func(_ *pb.RangeRequest, out *pb.RangeResponse) { out.Header.Revision-- })}},
	{"future that is answered", "kv/future-revision-is-refused", "and it succeeded", defect{get: asked(func(in *pb.RangeRequest) {
		if in.Revision > 1<<30 {
			in.Revision = 0
		}
	})}},
	{"past that is answered from now", "kv/read-at-a-revision", "a read at that revision finds", defect{get: asked(func(in *pb.RangeRequest) { in.Revision = 0 })}},
	{"list of the past that is of now", "kv/list-at-a-revision", "the keys at revision", defect{get: asked(func(in *pb.RangeRequest) { in.Revision = 0 })}},
	{"order of a database's collation", "kv/list-is-in-the-order-of-bytes", "to equal", defect{get: got(func(_ *pb.RangeRequest, out *pb.RangeResponse) {
		slices.SortFunc(out.Kvs, func(a, b *mvccpb.KeyValue) int { return bytes.Compare(bytes.ToLower(a.Key), bytes.ToLower(b.Key)) })
	})}},
	{"wildcards in a prefix", "kv/list-has-only-the-prefix", "below pods/", defect{get: asked(func(in *pb.RangeRequest) {
		if bytes.HasSuffix(in.Key, []byte("pods/")) {
			in.RangeEnd = append(in.RangeEnd[:len(in.RangeEnd)-1], 'z')
		}
	})}},
	{"values that end at a zero", "kv/values-are-bytes", "was written with the value", defect{get: got(func(_ *pb.RangeRequest, out *pb.RangeResponse) {
		for _, kv := range out.Kvs {
			kv.Value, _, _ = bytes.Cut(kv.Value, []byte{0})
		}
	})}},
	{"pages without a limit", "paging/page-is-not-longer-than-its-limit", "the first page", defect{get: asked(func(in *pb.RangeRequest) { in.Limit = 0 })}},
	{"pages of now", "paging/writes-between-pages-do-not-show", "the keys of pages", defect{get: asked(func(in *pb.RangeRequest) {
		if in.Limit > 1 {
			in.Revision = 0
		}
	})}},
	{"count of the page", "paging/count-is-of-all-that-is-left", "the count of a page", defect{get: got(func(_ *pb.RangeRequest, out *pb.RangeResponse) { out.Count = int64(len(out.Kvs)) })}},
	{"last page that is not told", "paging/count-is-of-all-that-is-left", "whether there is more", defect{get: got(func(in *pb.RangeRequest, out *pb.RangeResponse) { out.More = in.Limit != 0 })}},
	{"range stream that lacks its revision", "rangestream/is-the-list", "the revision that the stream tells", defect{stream: func(out *pb.RangeStreamResponse) { out.RangeResponse.Header = nil }}},
	{"range stream that lacks keys", "rangestream/is-the-list", "the keys of the stream", defect{stream: func(out *pb.RangeStreamResponse) {
		out.RangeResponse.Kvs = out.RangeResponse.Kvs[:len(out.RangeResponse.Kvs)/2]
	}}},

	{"condition that is not looked at", "txn/stale-update-is-refused", "succeeded: true", defect{txn: request(func(in *pb.TxnRequest) { in.Compare = nil })}},
	{"transaction that is not atomic", "txn/no-update-is-lost", "the counter", defect{txn: checkThenAct}},
	{"creations that both succeed", "txn/one-of-many-creates-wins", "were told that they did", defect{txn: checkThenAct}},
	{"partial transaction", "etcd-txn/is-one-revision", "the revisions of the events", defect{txn: oneByOne}},
	{"refusal without the present state", "txn/stale-delete-is-refused", "with nothing as the present state", defect{txn: answered(func(_ *pb.TxnRequest, out *pb.TxnResponse) {
		if !out.Succeeded && len(out.Responses) > 0 {
			out.Responses[0].GetResponseRange().Kvs = nil
		}
	})}},
	{"deletion of nothing that succeeds", "txn/delete-of-a-missing-key-is-refused", "succeeded: true", defect{txn: answered(func(_ *pb.TxnRequest, out *pb.TxnResponse) { out.Succeeded = true })}},
	{"write that tells an older revision", "kv/create-is-read-back", "its last modification", defect{txn: answered(func(_ *pb.TxnRequest, out *pb.TxnResponse) { out.Header.Revision-- })}},
	{"write that tells the store's revision for its own", "txn/write-tells-its-own-revision", "should have the value", defect{txn: tellsNow}},
	{"write that is acknowledged and lost", "kv/create-is-read-back", "a read right after that finds nothing", defect{txn: request(func(in *pb.TxnRequest) { in.Success = in.Success[:0] })}},

	{"lost lease", "lease/key-tells-its-lease", "the lease of a, written with", defect{txn: request(func(in *pb.TxnRequest) {
		for _, op := range in.Success {
			if put := op.GetRequestPut(); put != nil {
				put.Lease = 0
			}
		}
	})}},
	{"lease that does not expire", "lease/expiry-deletes-all-its-keys", "should have deleted 3 keys by now", defect{grant: granted(1000)}},
	{"lease that expires early", "lease/does-not-expire-early", "the life of a key", defect{grant: granted(0.5)}},
	{"lease that keeps its keys", "lease/update-takes-a-key-off-its-lease", "the keys after the short lease", defect{grant: sameLease()}},

	{"compaction that is not done", "etcd-compaction/is-done-when-it-is-answered", "and it succeeded", defect{compact: func(*proxy, context.Context, *pb.CompactionRequest) (*pb.CompactionResponse, error) {
		return &pb.CompactionResponse{Header: &pb.ResponseHeader{}}, nil
	}}},
	{"compaction that goes too far", "compaction/keeps-what-is-newer", "required revision has been compacted", defect{compact: func(p *proxy, ctx context.Context, in *pb.CompactionRequest) (*pb.CompactionResponse, error) {
		now, err := p.kv.Range(ctx, &pb.RangeRequest{Key: []byte("any")})
		if err != nil {
			return nil, err
		}
		in.Revision = now.Header.Revision
		return p.kv.Compact(ctx, in)
	}}},
	{"wrong compaction error", "compaction/older-reads-are-refused", "want the error", defect{get: func(p *proxy, ctx context.Context, in *pb.RangeRequest) (*pb.RangeResponse, error) {
		out, err := p.kv.Range(ctx, in)
		if err != nil {
			err = errors.New("no such revision")
		}
		return out, err
	}}},
	{"page after a compaction that is of now", "paging/compaction-ends-a-list", "the second page, of revision", defect{get: func(p *proxy, ctx context.Context, in *pb.RangeRequest) (*pb.RangeResponse, error) {
		out, err := p.kv.Range(ctx, in)
		if err != nil {
			in.Revision = 0
			return p.kv.Range(ctx, in)
		}
		return out, err
	}}},

	{"old version", "maintenance/version-supports-progress-requests", "is too old", defect{status: func(out *pb.StatusResponse) { out.Version = "3.5.12" }}},
	{"no size", "maintenance/tells-its-size", "the size of", defect{status: func(out *pb.StatusResponse) { out.DbSize = 0 }}},
}

// TestDefectsAreFound plants each defect, and judges the store by the case that must find it.
func TestDefectsAreFound(t *testing.T) {
	t.Parallel()
	cases := map[string]store.Case{}
	for _, c := range store.Cases() {
		cases[c.ID] = c
	}
	for _, d := range defects {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			endpoint := plant(t, serve(t, etcd.Config{MinLeaseTTL: 1}), d.defect)
			s := open(t, store.Config{Endpoints: []string{endpoint}, Patience: 3 * time.Second})
			result := engine.Judge(t.Context(), s, cases[d.found])
			assert.Equal(t, engine.Failed, result.State, d.found)
			assert.Contains(t, result.Message, d.says, d.found)
			assert.NotEmpty(t, result.Location, "the line of %s that failed", d.found)
			assert.NotEmpty(t, result.Step, "the step of %s that failed", d.found)
		})
	}
}

// TestHonestProxy shows that it is the defects that cases find, and not the proxy.
func TestHonestProxy(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	t.Parallel()
	s := open(t, store.Config{Endpoints: []string{plant(t, serve(t, etcd.Config{}), defect{})}})
	judgeKept(t, s, 1)
}

// got makes a defect of the answer of a read, asked one of its request.
func got(change func(in *pb.RangeRequest, out *pb.RangeResponse)) func(*proxy, context.Context, *pb.RangeRequest) (*pb.RangeResponse, error) {
	return func(p *proxy, ctx context.Context, in *pb.RangeRequest) (*pb.RangeResponse, error) {
		out, err := p.kv.Range(ctx, in)
		if err == nil {
			change(in, out)
		}
		return out, err
	}
}

func asked(change func(in *pb.RangeRequest)) func(*proxy, context.Context, *pb.RangeRequest) (*pb.RangeResponse, error) {
	return func(p *proxy, ctx context.Context, in *pb.RangeRequest) (*pb.RangeResponse, error) {
		change(in)
		return p.kv.Range(ctx, in)
	}
}

// stale answers reads of now as they were a revision ago, with the revision of now.
func stale(p *proxy, ctx context.Context, in *pb.RangeRequest) (*pb.RangeResponse, error) {
	now, err := p.kv.Range(ctx, in)
	if err != nil || in.Revision != 0 || now.Header.Revision < 3 {
		return now, err
	}
	in.Revision = now.Header.Revision - 1
	old, err := p.kv.Range(ctx, in)
	if err != nil {
		return now, nil // compacted
	}
	return old, nil
}

// torn reads the keys of a list one after another, the first last: when four more revisions
// have been written, unless nobody writes.
func torn(p *proxy, ctx context.Context, in *pb.RangeRequest) (*pb.RangeResponse, error) {
	out, err := p.kv.Range(ctx, in)
	if err != nil || len(in.RangeEnd) == 0 || len(out.Kvs) == 0 {
		return out, err
	}
	var first *pb.RangeResponse
	for range 1000 {
		first, err = p.kv.Range(ctx, &pb.RangeRequest{Key: out.Kvs[0].Key})
		if err != nil {
			return nil, err
		}
		if first.Header.Revision >= out.Header.Revision+4 {
			break
		}
	}
	if len(first.Kvs) == 1 {
		out.Kvs[0], out.Header = first.Kvs[0], first.Header
	}
	return out, nil
}

// backAndForth tells an older revision in each second read.
func backAndForth() func(*proxy, context.Context, *pb.RangeRequest) (*pb.RangeResponse, error) {
	var reads atomic.Int64
	return got(func(_ *pb.RangeRequest, out *pb.RangeResponse) {
		if reads.Add(1)%2 == 0 {
			out.Header.Revision -= 100
		}
	})
}

// answered makes a defect of the answer of a transaction, request one of its request.
func answered(change func(in *pb.TxnRequest, out *pb.TxnResponse)) func(*proxy, context.Context, *pb.TxnRequest) (*pb.TxnResponse, error) {
	return func(p *proxy, ctx context.Context, in *pb.TxnRequest) (*pb.TxnResponse, error) {
		out, err := p.kv.Txn(ctx, in)
		if err == nil {
			change(in, out)
		}
		return out, err
	}
}

func request(change func(in *pb.TxnRequest)) func(*proxy, context.Context, *pb.TxnRequest) (*pb.TxnResponse, error) {
	return func(p *proxy, ctx context.Context, in *pb.TxnRequest) (*pb.TxnResponse, error) {
		change(in)
		return p.kv.Txn(ctx, in)
	}
}

// tellsNow answers a write with the revision that the store has by then, as somebody else has
// written meanwhile.
func tellsNow(p *proxy, ctx context.Context, in *pb.TxnRequest) (*pb.TxnResponse, error) {
	out, err := p.kv.Txn(ctx, in)
	if err != nil {
		return nil, err
	}
	somebodyElse := &pb.PutRequest{Key: fmt.Appendf(nil, "meanwhile-%d", out.Header.Revision)}
	now, err := p.kv.Txn(ctx, &pb.TxnRequest{Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{RequestPut: somebodyElse}}}})
	if err != nil {
		return nil, err
	}
	out.Header = now.Header
	return out, nil
}

// checkThenAct looks at the condition first, and writes then, whatever has happened since.
func checkThenAct(p *proxy, ctx context.Context, in *pb.TxnRequest) (*pb.TxnResponse, error) {
	check, err := p.kv.Txn(ctx, &pb.TxnRequest{Compare: in.Compare, Failure: in.Failure})
	if err != nil || !check.Succeeded {
		return check, err
	}
	return p.kv.Txn(ctx, &pb.TxnRequest{Success: in.Success})
}

// oneByOne does the operations of a transaction one after another.
func oneByOne(p *proxy, ctx context.Context, in *pb.TxnRequest) (*pb.TxnResponse, error) {
	all := &pb.TxnResponse{Succeeded: true}
	for _, op := range in.Success {
		out, err := p.kv.Txn(ctx, &pb.TxnRequest{Compare: in.Compare, Success: []*pb.RequestOp{op}})
		if err != nil {
			return nil, err
		}
		all.Header, all.Responses = out.Header, append(all.Responses, out.Responses...)
	}
	return all, nil
}

// granted grants leases that live longer or shorter than they tell.
func granted(factor float64) func(*proxy, context.Context, *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	return func(p *proxy, ctx context.Context, in *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
		asked := in.TTL
		in.TTL = int64(float64(asked) * factor)
		out, err := p.lease.LeaseGrant(ctx, in)
		if err == nil {
			out.TTL = asked
		}
		return out, err
	}
}

// sameLease grants one lease of a store to everybody.
func sameLease() func(*proxy, context.Context, *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	var granted sync.Map // by proxy
	return func(p *proxy, ctx context.Context, in *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
		if out, ok := granted.Load(p); ok {
			return out.(*pb.LeaseGrantResponse), nil
		}
		out, err := p.lease.LeaseGrant(ctx, in)
		if err == nil {
			granted.Store(p, out)
		}
		return out, err
	}
}

// teller turns a response into those that the client receives.
type teller = func(out *pb.WatchResponse) []*pb.WatchResponse

// always changes each response, each all events.
func always(change func(out *pb.WatchResponse)) func(*proxy) func(*pb.WatchResponse) []*pb.WatchResponse {
	return func(*proxy) teller {
		return func(out *pb.WatchResponse) []*pb.WatchResponse {
			change(out)
			return []*pb.WatchResponse{out}
		}
	}
}

func each(change func(e *mvccpb.Event)) func(*proxy) func(*pb.WatchResponse) []*pb.WatchResponse {
	return always(func(out *pb.WatchResponse) {
		for _, e := range out.Events {
			change(e)
		}
	})
}

// once does something to one response, after so many events.
func once(after int, wrong teller) func(*proxy) func(*pb.WatchResponse) []*pb.WatchResponse {
	return func(*proxy) teller {
		events, done := 0, false
		return func(out *pb.WatchResponse) []*pb.WatchResponse {
			events += len(out.Events)
			if done || events < after || len(out.Events) == 0 {
				return []*pb.WatchResponse{out}
			}
			done = true
			return wrong(out)
		}
	}
}

func lose(out *pb.WatchResponse) []*pb.WatchResponse {
	out.Events = out.Events[1:]
	if len(out.Events) == 0 {
		return nil
	}
	return []*pb.WatchResponse{out}
}

func double(out *pb.WatchResponse) []*pb.WatchResponse { return []*pb.WatchResponse{out, out} }

// late sends one response with events after the next one.
func late(*proxy) func(*pb.WatchResponse) []*pb.WatchResponse {
	events, done := 0, false
	var kept *pb.WatchResponse
	return func(out *pb.WatchResponse) []*pb.WatchResponse {
		events += len(out.Events)
		switch {
		case kept != nil && len(out.Events) > 0:
			told := []*pb.WatchResponse{out, kept}
			kept = nil
			return told
		case events > 20 && !done && len(out.Events) > 0:
			kept, done = out, true
			return nil
		}
		return []*pb.WatchResponse{out}
	}
}

func isProgress(out *pb.WatchResponse) bool {
	return len(out.Events) == 0 && !out.Created && !out.Canceled
}

func unlessProgress(*proxy) func(*pb.WatchResponse) []*pb.WatchResponse {
	return func(out *pb.WatchResponse) []*pb.WatchResponse {
		if isProgress(out) {
			return nil
		}
		return []*pb.WatchResponse{out}
	}
}

// stuck tells the first progress again and again.
func stuck(*proxy) func(*pb.WatchResponse) []*pb.WatchResponse {
	var first int64
	return func(out *pb.WatchResponse) []*pb.WatchResponse {
		if isProgress(out) {
			if first == 0 {
				first = out.Header.Revision
			}
			out.Header.Revision = first
		}
		return []*pb.WatchResponse{out}
	}
}

// afterProgress sends events only after the progress that comes next.
func afterProgress(*proxy) func(*pb.WatchResponse) []*pb.WatchResponse {
	var kept []*pb.WatchResponse
	return func(out *pb.WatchResponse) []*pb.WatchResponse {
		switch {
		case len(out.Events) > 0:
			kept = append(kept, out)
			return nil
		case isProgress(out):
			told := append([]*pb.WatchResponse{out}, kept...)
			kept = nil
			return told
		}
		return []*pb.WatchResponse{out}
	}
}

// afterCreation tells progress as soon as a watch is created.
func afterCreation(p *proxy) func(*pb.WatchResponse) []*pb.WatchResponse {
	return func(out *pb.WatchResponse) []*pb.WatchResponse {
		if !out.Created {
			return []*pb.WatchResponse{out}
		}
		early := &pb.WatchResponse{Header: proto.CloneOf(out.Header), WatchId: out.WatchId}
		return []*pb.WatchResponse{out, early}
	}
}
