package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Limits of a stock etcd.
const (
	stockRequestBytes = 1.5 * 1024 * 1024
	stockTxnOps       = 128
)

var kvExpectations = []expectation{
	{"put errors", func(p *probe) {
		_, err := p.Put(p.ctx, "", "x")
		p.sayErr("no key", err)
		_, err = p.Put(p.ctx, p.key("large"), strings.Repeat("x", stockRequestBytes))
		p.sayErr("too large", err)
		_, err = p.Put(p.ctx, p.key("a"), "", clientv3.WithIgnoreValue())
		p.sayErr("no value to ignore", err)
		_, err = p.Put(p.ctx, p.key("a"), "", clientv3.WithIgnoreLease())
		p.sayErr("no lease to ignore", err)
		_, err = p.Put(p.ctx, p.key("a"), "x", clientv3.WithIgnoreValue())
		p.sayErr("value and ignored", err)
		_, err = p.Put(p.ctx, p.key("a"), "x", clientv3.WithIgnoreLease(), clientv3.WithLease(7))
		p.sayErr("lease and ignored", err)
		p.sayKeys("left")
	}, []string{
		"no key: rpctypes.EtcdError etcdserver: key is not provided",
		"too large: rpctypes.EtcdError etcdserver: request is too large",
		"no value to ignore: rpctypes.EtcdError etcdserver: key not found",
		"no lease to ignore: rpctypes.EtcdError etcdserver: key not found",
		"value and ignored: rpctypes.EtcdError etcdserver: value is provided",
		"lease and ignored: rpctypes.EtcdError etcdserver: lease is provided",
		"left: []",
	}},
	{"read errors", func(p *probe) {
		_, err := p.Get(p.ctx, "")
		p.sayErr("no key", err)
		_, err = p.Get(p.ctx, p.key("a"), clientv3.WithRev(p.base+1))
		p.sayErr("future", err)
		_, err = p.Get(p.ctx, p.key("a"), clientv3.WithSort(clientv3.SortTarget(9), clientv3.SortAscend))
		p.sayErr("sort", err)
		_, err = p.Delete(p.ctx, "")
		p.sayErr("delete no key", err)
		chunks, err := p.GetStream(p.ctx, p.key("a"), clientv3.WithRev(p.base+1))
		if err == nil {
			_, err = clientv3.GetStreamToGetResponse(chunks)
		}
		p.sayErr("stream", err)
	}, []string{
		"no key: rpctypes.EtcdError etcdserver: key is not provided",
		"future: rpctypes.EtcdError etcdserver: mvcc: required revision is a future revision",
		"sort: rpctypes.EtcdError etcdserver: invalid sort option",
		"delete no key: rpctypes.EtcdError etcdserver: key is not provided",
		"stream: rpctypes.EtcdError etcdserver: mvcc: required revision is a future revision",
	}},
	{"keys only and counted only", func(p *probe) {
		p.puts("a=1", "b=2")
		resp, err := p.Get(p.ctx, p.prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithCountOnly())
		p.must(err)
		p.say("%d keys of %d", len(resp.Kvs), resp.Count)
	}, []string{"0 keys of 2"}},
	{"compaction", func(p *probe) {
		p.puts("a=1", "a=2", "a=3")
		for _, rev := range []int64{p.base + 2, p.base + 2, p.base + 1, p.base + 9} {
			_, err := p.Compact(p.ctx, rev)
			p.sayErr("compact "+p.rev(rev), err)
		}
		for rev := p.base + 1; rev <= p.base+3; rev++ {
			p.sayKeys("at "+p.rev(rev), clientv3.WithRev(rev))
		}
		_, err := p.Txn(p.ctx).Then(clientv3.OpGet(p.key("a"), clientv3.WithRev(p.base+1))).Commit()
		p.sayErr("in a transaction", err)
		chunks, err := p.GetStream(p.ctx, p.key("a"), clientv3.WithRev(p.base+1))
		if err == nil {
			_, err = clientv3.GetStreamToGetResponse(chunks)
		}
		p.sayErr("in a stream", err)
	}, []string{
		"compact +2: ok",
		"compact +2: rpctypes.EtcdError etcdserver: mvcc: required revision has been compacted",
		"compact +1: rpctypes.EtcdError etcdserver: mvcc: required revision has been compacted",
		"compact +9: rpctypes.EtcdError etcdserver: mvcc: required revision is a future revision",
		"at +1: rpctypes.EtcdError etcdserver: mvcc: required revision has been compacted",
		"at +2: [a=2]",
		"at +3: [a=3]",
		"in a transaction: rpctypes.EtcdError etcdserver: mvcc: required revision has been compacted",
		"in a stream: rpctypes.EtcdError etcdserver: mvcc: required revision has been compacted",
	}},
	{"context", func(p *probe) {
		cancelled, cancel := context.WithCancel(p.ctx)
		cancel()
		_, err := p.Get(cancelled, p.key("a"))
		p.say("cancelled get: %t", errors.Is(err, context.Canceled))
		_, err = p.Put(cancelled, p.key("a"), "")
		p.say("cancelled put: %t", errors.Is(err, context.Canceled))
		_, err = p.Txn(cancelled).Then(clientv3.OpPut(p.key("a"), "")).Commit()
		p.say("cancelled transaction: %t", errors.Is(err, context.Canceled))
		late, cancel := context.WithDeadline(p.ctx, time.Unix(1, 0))
		defer cancel()
		_, err = p.Get(late, p.key("a"))
		p.say("late get: %t", errors.Is(err, context.DeadlineExceeded))
		_, err = p.Put(late, p.key("a"), "")
		p.say("late put: %t", errors.Is(err, context.DeadlineExceeded))
		p.sayKeys("left")
	}, []string{
		"cancelled get: true", "cancelled put: true", "cancelled transaction: true",
		"late get: true", "late put: true", "left: []",
	}},
	{"required leader", func(p *probe) {
		_, err := p.Put(clientv3.WithRequireLeader(p.ctx), p.key("a"), "1")
		p.sayErr("put", err)
	}, []string{"put: ok"}},
}

var txnExpectations = []expectation{
	{"transaction errors", func(p *probe) {
		many := func(n int) (ops []clientv3.Op) {
			for i := range n {
				ops = append(ops, clientv3.OpPut(p.key(fmt.Sprint(i)), ""))
			}
			return ops
		}
		put := clientv3.OpPut(p.key("a"), "1")
		nest := func(ops ...clientv3.Op) clientv3.Op { return clientv3.OpTxn(nil, ops, nil) }
		for _, tt := range []struct {
			name string
			ops  []clientv3.Op
		}{
			{"129 operations", many(stockTxnOps + 1)},
			{"put twice", []clientv3.Op{put, put}},
			{"put and deleted", []clientv3.Op{put, clientv3.OpDelete(p.prefix, clientv3.WithPrefix())}},
			{"put twice, nested", []clientv3.Op{put, nest(put)}},
			{"no key", []clientv3.Op{clientv3.OpPut("", "")}},
			{"no such lease", []clientv3.Op{put, clientv3.OpPut(p.key("b"), "", clientv3.WithLease(7))}},
			{"future", []clientv3.Op{put, clientv3.OpGet(p.key("a"), clientv3.WithRev(p.base+99))}},
			{"nothing to ignore", []clientv3.Op{put, clientv3.OpPut(p.key("b"), "", clientv3.WithIgnoreValue())}},
			{"too large", []clientv3.Op{clientv3.OpPut(p.key("b"), strings.Repeat("x", stockRequestBytes))}},
		} {
			_, err := p.Txn(p.ctx).Then(tt.ops...).Commit()
			p.sayErr(tt.name, err)
			_, err = p.Txn(p.ctx).If(clientv3.Compare(clientv3.Version(p.key("a")), "=", 1)).Else(tt.ops...).Commit()
			p.sayErr("else "+tt.name, err)
		}
		p.sayKeys("left")
	}, func() (want []string) {
		for _, line := range []string{
			"129 operations: rpctypes.EtcdError etcdserver: too many operations in txn request",
			"put twice: rpctypes.EtcdError etcdserver: duplicate key given in txn request",
			"put and deleted: rpctypes.EtcdError etcdserver: duplicate key given in txn request",
			"put twice, nested: rpctypes.EtcdError etcdserver: duplicate key given in txn request",
			"no key: rpctypes.EtcdError etcdserver: key is not provided",
			"no such lease: rpctypes.EtcdError etcdserver: requested lease not found",
			"future: rpctypes.EtcdError etcdserver: mvcc: required revision is a future revision",
			"nothing to ignore: rpctypes.EtcdError etcdserver: key not found",
			"too large: rpctypes.EtcdError etcdserver: request is too large",
		} {
			want = append(want, line, "else "+line)
		}
		return append(want, "left: []")
	}()},
	{"128 operations", func(p *probe) {
		var ops []clientv3.Op
		for i := range stockTxnOps {
			ops = append(ops, clientv3.OpPut(p.key(fmt.Sprint(i)), ""))
		}
		resp, err := p.Txn(p.ctx).Then(ops...).Commit()
		p.must(err)
		p.say("%d answers at %s", len(resp.Responses), p.rev(resp.Header.Revision))
	}, []string{"128 answers at +1"}},
	{"range compared", func(p *probe) {
		p.puts("a=1", "b=1", "b=2")
		for _, c := range []clientv3.Cmp{
			clientv3.Compare(clientv3.Value(p.prefix), "!=", "x").WithPrefix(),
			clientv3.Compare(clientv3.Version(p.prefix), "=", 1).WithPrefix(),
			clientv3.Compare(clientv3.CreateRevision(p.key("none")), "=", 0).WithPrefix(),
			clientv3.Compare(clientv3.Value(p.key("none")), "=", "").WithPrefix(),
		} {
			resp, err := p.Txn(p.ctx).If(c).Commit()
			p.must(err)
			p.say("%t", resp.Succeeded)
		}
	}, []string{"true", "false", "true", "false"}},
	{"nested", func(p *probe) {
		holds := clientv3.Compare(clientv3.CreateRevision(p.key("a")), "=", 0)
		resp, err := p.Txn(p.ctx).If(holds).Then(
			clientv3.OpPut(p.key("a"), "1"),
			clientv3.OpTxn([]clientv3.Cmp{holds},
				[]clientv3.Op{clientv3.OpPut(p.key("b"), "then"), clientv3.OpGet(p.key("a"))},
				[]clientv3.Op{clientv3.OpPut(p.key("b"), "else")}),
		).Commit()
		p.must(err)
		inner := resp.Responses[1].GetResponseTxn()
		p.say("inner %t at %s, reads %s", inner.Succeeded, p.rev(resp.Header.Revision), inner.Responses[1].GetResponseRange().Kvs[0].Value)
		p.sayKeys("left")
	}, []string{"inner true at +1, reads 1", "left: [a=1 b=then]"}},
}
