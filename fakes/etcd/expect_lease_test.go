package etcd

import (
	"context"
	"errors"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"
)

var leaseExpectations = []expectation{
	{"lease not found", func(p *probe) {
		_, err := p.Put(p.ctx, p.key("a"), "", clientv3.WithLease(500))
		p.sayErr("put", err)
		_, err = p.Revoke(p.ctx, 500)
		p.sayErr("revoke", err)
		_, err = p.KeepAliveOnce(p.ctx, 500)
		p.sayErr("keep alive once", err)
		_, err = p.KeepAliveOnce(p.ctx, 0)
		p.sayErr("keep alive none", err)
		left, err := p.TimeToLive(p.ctx, 500, clientv3.WithAttachedKeys())
		p.sayErr("time to live", err)
		p.say("%d of %d, keys %d", left.TTL, left.GrantedTTL, len(left.Keys))
		answers, err := p.KeepAlive(p.ctx, 500)
		p.sayErr("keep alive", err)
		_, ok := <-answers
		p.say("answered %t", ok)
	}, []string{
		"put: rpctypes.EtcdError etcdserver: requested lease not found",
		"revoke: rpctypes.EtcdError etcdserver: requested lease not found",
		"keep alive once: rpctypes.EtcdError etcdserver: requested lease not found",
		"keep alive none: rpctypes.EtcdError etcdserver: requested lease not found",
		"time to live: ok",
		"-1 of 0, keys 0",
		"keep alive: ok",
		"answered false",
	}},
	{"lease granted", func(p *probe) {
		_, err := p.Grant(p.ctx, clientv3.MaxLeaseTTL+1)
		p.sayErr("too long", err)
		l, err := p.Grant(p.ctx, 0)
		p.must(err)
		p.say("at least %d", l.TTL)
		id := p.grant(600, "a", "b")
		left, err := p.TimeToLive(p.ctx, id, clientv3.WithAttachedKeys())
		p.must(err)
		slices.SortFunc(left.Keys, slices.Compare[[]byte]) // etcd keeps them in a map
		p.say("granted %d, keys %s", left.GrantedTTL, left.Keys)
		once, err := p.KeepAliveOnce(p.ctx, id)
		p.must(err)
		p.say("renewed to %d at %s", once.TTL, p.rev(once.ResponseHeader.Revision))
		got, err := p.Get(p.ctx, p.key("a"))
		p.must(err)
		p.say("lease of the key: %t", got.Kvs[0].Lease == int64(id))
	}, []string{
		"too long: rpctypes.EtcdError etcdserver: too large lease TTL",
		"at least 2",
		"granted 600, keys [a b]",
		"renewed to 600 at +2",
		"lease of the key: true",
	}},
	{"lease revoked", func(p *probe) {
		w := p.Watch(p.ctx, p.prefix, clientv3.WithPrefix(), clientv3.WithPrevKV(), clientv3.WithRev(p.base+4))
		id := p.grant(600, "b", "a")
		p.puts("c=free")
		_, err := p.Revoke(p.ctx, id)
		p.must(err)
		p.sayWatch(w, 2)
		p.sayKeys("left")
		_, err = p.Put(p.ctx, p.key("a"), "", clientv3.WithLease(id))
		p.sayErr("put", err)
		_, err = p.Revoke(p.ctx, id)
		p.sayErr("revoke again", err)
		empty := p.grant(600)
		resp, err := p.Revoke(p.ctx, empty)
		p.must(err)
		p.say("one without keys is revoked at %s", p.rev(resp.Header.Revision))
	}, []string{
		"DELETE a= +4 was leased, DELETE b= +4 was leased",
		"left: [c=free]",
		"put: rpctypes.EtcdError etcdserver: requested lease not found",
		"revoke again: rpctypes.EtcdError etcdserver: requested lease not found",
		"one without keys is revoked at +4",
	}},
	{"lease changed", func(p *probe) {
		old, id := p.grant(600, "moved", "freed", "deleted", "kept"), p.grant(600)
		_, err := p.Put(p.ctx, p.key("moved"), "2", clientv3.WithLease(id))
		p.must(err)
		p.puts("freed=2")
		p.del("deleted")
		p.puts("deleted=2")
		_, err = p.Put(p.ctx, p.key("kept"), "2", clientv3.WithIgnoreLease())
		p.must(err)
		_, err = p.Revoke(p.ctx, old)
		p.must(err)
		p.sayKeys("left")
		_, err = p.Revoke(p.ctx, id)
		p.must(err)
		p.sayKeys("left")
	}, []string{"left: [deleted=2 freed=2 moved=2]", "left: [deleted=2 freed=2]"}},
	{"lease expires", func(p *probe) {
		w := p.Watch(p.ctx, p.prefix, clientv3.WithPrefix(), clientv3.WithRev(p.base+3))
		id := p.grant(1, "b", "a")
		p.sayWatch(w, 2)
		p.sayKeys("left")
		_, err := p.KeepAliveOnce(p.ctx, id)
		p.sayErr("keep alive once", err)
		left, err := p.TimeToLive(p.ctx, id)
		p.must(err)
		p.say("%d left", left.TTL)
	}, []string{
		"DELETE a= +3, DELETE b= +3",
		"left: []",
		"keep alive once: rpctypes.EtcdError etcdserver: requested lease not found",
		"-1 left",
	}},
	{"lease kept alive", func(p *probe) {
		c := p.another()
		id, other := p.grant(2, "a"), p.grant(2)
		answers, err := c.KeepAlive(p.ctx, id)
		p.must(err)
		others, err := c.KeepAlive(p.ctx, other)
		p.must(err)
		first := <-answers
		p.say("%t, %d", first.ID == id, first.TTL)
		// One call that ends takes no other along.
		ctx, cancel := context.WithCancel(p.ctx)
		joined, err := c.KeepAlive(ctx, id)
		p.must(err)
		cancel()
		_, ok := <-joined
		p.say("joined and cancelled: answered %t", ok)
		// Nor does a lease that is gone.
		_, err = p.Revoke(p.ctx, other)
		p.must(err)
		for range others {
		}
		for range 4 {
			<-answers
		}
		p.sayKeys("after longer than its time")
		_ = c.Close()
		for range answers {
		}
		p.say("closed with its client")
		gone, err := c.KeepAlive(p.ctx, id)
		var halted clientv3.ErrKeepAliveHalted
		p.say("halted: %t", errors.As(err, &halted))
		_, ok = <-gone
		p.say("answered %t", ok)
	}, []string{
		"true, 2",
		"joined and cancelled: answered false",
		"after longer than its time: [a=leased]",
		"closed with its client",
		"halted: true",
		"answered false",
	}},
	{"leases listed", func(p *probe) {
		id := p.grant(600)
		list, err := p.Leases(p.ctx)
		p.must(err)
		found := 0
		for _, l := range list.Leases {
			if l.ID == id {
				found++
			}
		}
		p.say("listed %d times at %s", found, p.rev(list.Revision))
	}, []string{"listed 1 times at +0"}},
}
