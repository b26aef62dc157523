package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"snowglobe.test/fakes/etcd/internal/realetcd"
)

// expectation is something etcd's client library may expect of any etcd, as
// etcd's own integration tests have it.
type expectation struct {
	name string
	// do says what it sees.
	do func(p *probe)
	// want is what must be said, by an embedded etcd as well as here.
	want []string
}

// probe is a client with a key prefix that no other client uses.
type probe struct {
	testing.TB
	*clientv3.Client
	ctx context.Context
	// another returns another client of the same etcd.
	another func() *clientv3.Client
	prefix  string
	base    int64 // the revision it began at
	granted []clientv3.LeaseID
	said    []string
}

// TestExpectations checks the same expectations on an embedded etcd and on this
// one, in process and over gRPC.
func TestExpectations(t *testing.T) {
	t.Parallel() // much of it is leases that run out
	var all []expectation
	for _, some := range [][]expectation{kvExpectations, txnExpectations, leaseExpectations, watchExpectations, watchEndExpectations} {
		all = append(all, some...)
	}
	systems := map[string]func(t *testing.T) func() *clientv3.Client{
		"embedded": func(t *testing.T) func() *clientv3.Client {
			real, err := realetcd.Start(shortDir(t))
			require.NoError(t, err)
			t.Cleanup(real.Close)
			return func() *clientv3.Client {
				c, err := real.Client()
				require.NoError(t, err)
				return c
			}
		},
		"in process": func(t *testing.T) func() *clientv3.Client {
			s := newServer(t, Config{})
			return func() *clientv3.Client { return s.Client().Client }
		},
		"gRPC": func(t *testing.T) func() *clientv3.Client {
			s := newServer(t, Config{})
			return func() *clientv3.Client { return dial(t, s).Client }
		},
	}
	for name, start := range systems {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open := start(t)
			c := open()
			for i, e := range all {
				t.Run(e.name, func(t *testing.T) { e.check(t, c, open, fmt.Sprintf("%03d/", i)) })
			}
		})
	}
}

func (e expectation) check(t *testing.T, c *clientv3.Client, another func() *clientv3.Client, prefix string) {
	now, err := c.Get(t.Context(), "a")
	require.NoError(t, err)
	// A watch stream of its own: etcd's client reports a refused watch also to
	// later watches on the same stream.
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(t.Context(), "probe", prefix))
	defer cancel()
	p := &probe{TB: t, Client: c, ctx: ctx, another: another, prefix: prefix, base: now.Header.Revision}
	e.do(p)
	// A lease that expired during a later case would move its revisions.
	for _, id := range p.granted {
		_, err := c.Revoke(t.Context(), id)
		assert.False(t, err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound), "revoke a lease that is left: %v", err)
	}
	assert.Empty(t, cmp.Diff(e.want, p.said), "-want +got")
}

// key returns a key of the probe's own.
func (p *probe) key(name string) string { return p.prefix + name }

// say notes what was seen. The probe's own prefix is left out.
func (p *probe) say(format string, args ...any) {
	p.said = append(p.said, strings.ReplaceAll(fmt.Sprintf(format, args...), p.prefix, ""))
}

// sayErr notes how something went.
func (p *probe) sayErr(what string, err error) {
	if err == nil {
		p.say("%s: ok", what)
		return
	}
	if clientv3.IsConnCanceled(err) && p.ctx.Err() == nil {
		p.say("%s: connection closed", what)
		return
	}
	p.say("%s: %T %v", what, err, err)
}

// must ends the expectation on an error that it is not about.
func (p *probe) must(err error) {
	p.Helper()
	require.NoError(p, err)
}

// puts puts keys given as "key=value", at a revision each.
func (p *probe) puts(pairs ...string) {
	p.Helper()
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		_, err := p.Put(p.ctx, p.key(key), value)
		p.must(err)
	}
}

// del deletes a key.
func (p *probe) del(key string) {
	p.Helper()
	_, err := p.Delete(p.ctx, p.key(key))
	p.must(err)
}

// grant grants a lease and puts keys with it.
func (p *probe) grant(ttl int64, keys ...string) clientv3.LeaseID {
	p.Helper()
	l, err := p.Grant(p.ctx, ttl)
	p.must(err)
	p.granted = append(p.granted, l.ID)
	for _, key := range keys {
		_, err := p.Put(p.ctx, p.key(key), "leased", clientv3.WithLease(l.ID))
		p.must(err)
	}
	return l.ID
}

// rev returns a revision as the distance from where the probe began.
func (p *probe) rev(revision int64) string { return fmt.Sprintf("%+d", revision-p.base) }

// sayKeys notes what keys there are.
func (p *probe) sayKeys(what string, opts ...clientv3.OpOption) {
	p.Helper()
	resp, err := p.Get(p.ctx, p.prefix, append(opts, clientv3.WithPrefix())...)
	if err != nil {
		p.sayErr(what, err)
		return
	}
	var kvs []string
	for _, kv := range resp.Kvs {
		kvs = append(kvs, fmt.Sprintf("%s=%s", kv.Key, kv.Value))
	}
	p.say("%s: %v", what, kvs)
}

// sayWatch notes the next responses of a watch, until so many events have come
// or it ends.
func (p *probe) sayWatch(w clientv3.WatchChan, events int) {
	for events > 0 {
		resp, ok := <-w
		switch {
		case !ok:
			p.say("closed")
			return
		case resp.Err() != nil:
			text := fmt.Sprintf("ended: %T %v", resp.Err(), resp.Err())
			if resp.CompactRevision != 0 {
				text += ", compacted " + p.rev(resp.CompactRevision)
			}
			p.say("%s", text)
		case resp.Created:
			p.say("created")
		case resp.IsProgressNotify():
			p.say("progress %s", p.rev(resp.Header.Revision))
			events--
		default:
			events -= len(resp.Events)
			p.say("%s", p.events(resp.Events))
		}
	}
}

// sayClosed notes how a watch ends whose client was closed. The client then
// finds its context cancelled and its stream broken, and takes either first:
// whether the watch tells of the cancellation before it closes is chance.
func (p *probe) sayClosed(w clientv3.WatchChan) {
	resp, ok := <-w
	if ok && status.Code(resp.Err()) == codes.Canceled {
		_, ok = <-w
	}
	p.say("closed: %v", !ok)
}

// events returns the events of a response on one line.
func (p *probe) events(list []*clientv3.Event) string {
	var texts []string
	for _, ev := range list {
		text := fmt.Sprintf("%s %s=%s %s", ev.Type, ev.Kv.Key, ev.Kv.Value, p.rev(ev.Kv.ModRevision))
		if ev.PrevKv != nil {
			text += " was " + string(ev.PrevKv.Value)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}
