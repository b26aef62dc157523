package etcd

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"
)

var watchExpectations = []expectation{
	{"watch from now", func(p *probe) {
		p.puts("a=before")
		w := p.Watch(p.ctx, p.key("a"), clientv3.WithCreatedNotify())
		p.say("created %t", (<-w).Created)
		p.puts("a=1", "other=2", "a=3")
		p.sayWatch(w, 2)
	}, []string{"created true", "PUT a=1 +2", "PUT a=3 +4"}},
	{"watch the past", func(p *probe) {
		p.puts("a=1", "a=2", "a=3")
		p.del("a")
		p.sayWatch(p.Watch(p.ctx, p.key("a"), clientv3.WithRev(p.base+2)), 3)
	}, []string{"PUT a=2 +2, PUT a=3 +3, DELETE a= +4"}},
	{"watch the future", func(p *probe) {
		w := p.Watch(p.ctx, p.key("a"), clientv3.WithRev(p.base+3))
		p.puts("a=1", "a=2", "a=3", "a=4")
		p.sayWatch(w, 2)
	}, []string{"PUT a=3 +3", "PUT a=4 +4"}},
	{"watch resumed", func(p *probe) {
		ctx, cancel := context.WithCancel(p.ctx)
		w := p.Watch(ctx, p.key("a"), clientv3.WithRev(p.base+1))
		p.puts("a=1")
		p.sayWatch(w, 1)
		cancel()
		p.sayWatch(w, 1)
		p.puts("a=2", "a=3")
		p.sayWatch(p.Watch(p.ctx, p.key("a"), clientv3.WithRev(p.base+2)), 2)
	}, []string{"PUT a=1 +1", "closed", "PUT a=2 +2, PUT a=3 +3"}},
	{"revisions of headers", func(p *probe) {
		header := func(w clientv3.WatchChan) {
			resp := <-w
			p.say("%d events at %s", len(resp.Events), p.rev(resp.Header.Revision))
		}
		for i := range 1200 {
			p.puts(fmt.Sprintf("a=%d", i))
		}
		p.puts("other=1")
		past := p.Watch(p.ctx, p.key("a"), clientv3.WithRev(p.base+1))
		header(past)
		header(past)
		p.puts("a=1200")
		header(past)
	}, []string{"1000 events at +1201", "200 events at +1201", "1 events at +1202"}},
	{"watch a prefix, a range, from a key", func(p *probe) {
		p.puts("a=1", "aa=2", "b=3", "c=4")
		since := clientv3.WithRev(p.base + 1)
		p.sayWatch(p.Watch(p.ctx, p.key("a"), clientv3.WithPrefix(), since), 2)
		p.sayWatch(p.Watch(p.ctx, p.key("aa"), clientv3.WithRange(p.key("c")), since), 2)
		p.sayWatch(p.Watch(p.ctx, p.key("b"), clientv3.WithFromKey(), since), 2)
		p.sayWatch(p.Watch(p.ctx, "", clientv3.WithPrefix(), since), 4)
	}, []string{
		"PUT a=1 +1, PUT aa=2 +2", "PUT aa=2 +2, PUT b=3 +3", "PUT b=3 +3, PUT c=4 +4",
		"PUT a=1 +1, PUT aa=2 +2, PUT b=3 +3, PUT c=4 +4",
	}},
	{"watch one transaction", func(p *probe) {
		w := p.Watch(p.ctx, p.prefix, clientv3.WithPrefix(), clientv3.WithPrevKV(), clientv3.WithRev(p.base+1))
		p.puts("b=0")
		_, err := p.Txn(p.ctx).Then(clientv3.OpPut(p.key("c"), "1"), clientv3.OpDelete(p.key("b")), clientv3.OpPut(p.key("a"), "1")).Commit()
		p.must(err)
		p.sayWatch(w, 4)
	}, []string{"PUT b=0 +1", "PUT c=1 +2, DELETE b= +2 was 0, PUT a=1 +2"}},
	{"watch with filters", func(p *probe) {
		puts := p.Watch(p.ctx, p.key("a"), clientv3.WithFilterDelete(), clientv3.WithRev(p.base+1))
		deletes := p.Watch(p.ctx, p.key("a"), clientv3.WithFilterPut(), clientv3.WithRev(p.base+1))
		p.puts("a=1")
		p.del("a")
		p.puts("a=2")
		p.del("a")
		p.sayWatch(puts, 2)
		p.sayWatch(deletes, 2)
	}, []string{"PUT a=1 +1", "PUT a=2 +3", "DELETE a= +2", "DELETE a= +4"}},
	{"watches with and without previous values", func(p *probe) {
		p.puts("a=0")
		streams := []context.Context{p.ctx, metadata.AppendToOutgoingContext(p.ctx, "stream", "other")}
		for _, ctx := range streams {
			with := p.Watch(ctx, p.key("a"), clientv3.WithPrevKV(), clientv3.WithCreatedNotify())
			without := p.Watch(ctx, p.key("a"), clientv3.WithCreatedNotify())
			<-with
			<-without
			p.puts("a=1")
			p.del("a")
			p.sayWatch(with, 2)
			p.sayWatch(without, 2)
			p.puts("a=0")
		}
	}, []string{
		"PUT a=1 +2 was 0", "DELETE a= +3 was 1", "PUT a=1 +2", "DELETE a= +3",
		"PUT a=1 +5 was 0", "DELETE a= +6 was 1", "PUT a=1 +5", "DELETE a= +6",
	}},
	{"watch with a required leader", func(p *probe) {
		w := p.Watch(clientv3.WithRequireLeader(p.ctx), p.key("a"), clientv3.WithRev(p.base+1))
		p.puts("a=1")
		p.sayWatch(w, 1)
	}, []string{"PUT a=1 +1"}},
	{"progress requested", func(p *probe) {
		w := p.Watch(p.ctx, p.key("a"), clientv3.WithCreatedNotify())
		<-w
		p.puts("other=1", "a=2")
		p.sayWatch(w, 1)
		p.must(p.RequestProgress(p.ctx))
		p.sayWatch(w, 1)
	}, []string{"PUT a=2 +2", "progress +2"}},
}

var watchEndExpectations = []expectation{
	{"watch of nothing", func(p *probe) {
		p.sayWatch(p.Watch(p.ctx, p.key("b"), clientv3.WithRange(p.key("a"))), 1)
		p.sayWatch(p.Watch(p.ctx, p.key("b"), clientv3.WithRange(p.key("b"))), 1)
		p.sayWatch(p.Watch(p.ctx, p.key("b"), clientv3.WithRev(-1)), 1)
	}, []string{
		"ended: *errors.errorString mvcc: watcher range is empty", "closed",
		"ended: *errors.errorString mvcc: watcher range is empty", "closed",
		"ended: rpctypes.EtcdError etcdserver: mvcc: required revision has been compacted", "closed",
	}},
	{"watch compacted", func(p *probe) {
		p.puts("a=1", "a=2", "a=3")
		_, err := p.Compact(p.ctx, p.base+3)
		p.must(err)
		p.sayWatch(p.Watch(p.ctx, p.key("a"), clientv3.WithRev(p.base+1)), 9)
		p.sayWatch(p.Watch(p.ctx, p.key("a"), clientv3.WithRev(p.base+3)), 1)
	}, []string{
		"ended: rpctypes.EtcdError etcdserver: mvcc: required revision has been compacted, compacted +3", "closed",
		"PUT a=3 +3",
	}},
	{"synced watch outlives a compaction", func(p *probe) {
		w := p.Watch(p.ctx, p.key("a"), clientv3.WithCreatedNotify())
		<-w
		p.puts("a=1", "a=2")
		p.sayWatch(w, 2)
		_, err := p.Compact(p.ctx, p.base+2)
		p.must(err)
		p.puts("a=3")
		p.sayWatch(w, 1)
	}, []string{"PUT a=1 +1", "PUT a=2 +2", "PUT a=3 +3"}},
	{"watch cancelled", func(p *probe) {
		done, cancel := context.WithCancel(p.ctx)
		cancel()
		p.sayWatch(p.Watch(done, p.key("a")), 1)
		ctx, cancel := context.WithCancel(p.ctx)
		w, other := p.Watch(ctx, p.key("a"), clientv3.WithCreatedNotify()), p.Watch(p.ctx, p.key("a"), clientv3.WithRev(p.base+1))
		<-w
		cancel()
		p.sayWatch(w, 1)
		p.puts("a=1")
		p.sayWatch(other, 1)
	}, []string{"closed", "closed", "PUT a=1 +1"}},
	{"watch of a client that closes", func(p *probe) {
		c := p.another()
		w := c.Watch(p.ctx, p.key("a"), clientv3.WithCreatedNotify())
		<-w
		_ = c.Close()
		p.sayClosed(w)
		p.sayClosed(c.Watch(p.ctx, p.key("a")))
	}, []string{"closed: true", "closed: true"}},
	{"watches closed", func(p *probe) {
		c := p.another()
		w := c.Watch(p.ctx, p.key("a"), clientv3.WithCreatedNotify())
		<-w
		p.sayErr("close", c.Watcher.Close())
		p.sayClosed(w)
		_, err := c.Put(p.ctx, p.key("a"), "1")
		p.sayErr("put", err)
	}, []string{"close: ok", "closed: true", "put: ok"}},
}
