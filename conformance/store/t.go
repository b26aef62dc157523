package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onsi/gomega"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"google.golang.org/grpc/metadata"
)

// T is what a case is given: two clients of the store, each with a connection of its
// own, keys that no other case uses, and assertions.
type T struct {
	gomega.Gomega
	Client *kubernetes.Client
	Other  *kubernetes.Client
	// Prefix is what the keys of this case begin with.
	Prefix string

	store *Store
	// patience bounds the wait for what should come at once.
	patience time.Duration
	fail     func(message string, callerSkip ...int)
	watches  []context.CancelFunc
}

func newT(s *Store, c Case, fail func(message string, callerSkip ...int)) *T {
	return &T{
		Gomega: gomega.NewGomega(fail), Client: s.clients[0], Other: s.clients[1],
		Prefix: s.prefix + strings.ReplaceAll(c.ID, "/", "-") + "/", store: s, patience: s.cfg.Patience, fail: fail,
	}
}

func (t *T) cleanUp(ctx context.Context) error {
	for _, cancel := range t.watches {
		cancel()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	return t.store.remove(ctx, t.Prefix)
}

// Failf ends the case: the promise is broken.
func (t *T) Failf(format string, args ...any) { t.fail(fmt.Sprintf(format, args...)) }

// Must fails the case if a request fails that should not.
func (t *T) Must(err error, format string, args ...any) {
	if err != nil {
		t.Failf("%s: %v", fmt.Sprintf(format, args...), err)
	}
}

// errorOf is the error of a request whose answer does not matter.
func errorOf(_ any, err error) error { return err }

// Key is a key of this case.
func (t *T) Key(name string) string { return t.Prefix + name }

// What is refused is told of the key as it is, as an API server is.
var (
	putOrTell    = kubernetes.PutOptions{GetOnFailure: true}
	deleteOrTell = kubernetes.DeleteOptions{GetOnFailure: true}
)

// Create writes a key that does not exist, as an API server does, and returns its revision.
func (t *T) Create(ctx context.Context, name, value string) int64 {
	return t.createWith(ctx, name, value, kubernetes.PutOptions{})
}

func (t *T) createWith(ctx context.Context, name, value string, opts kubernetes.PutOptions) int64 {
	resp, err := t.Client.Kubernetes.OptimisticPut(ctx, t.Key(name), []byte(value), 0, opts)
	t.Must(err, "create %s", name)
	if !resp.Succeeded {
		t.Failf("create %s: refused as if the key existed, which it does not", name)
	}
	return resp.Revision
}

// Update replaces the value of a key whose last revision is known, and returns its new one.
func (t *T) Update(ctx context.Context, name, value string, revision int64) int64 {
	return t.updateWith(ctx, name, value, revision, kubernetes.PutOptions{})
}

func (t *T) updateWith(ctx context.Context, name, value string, revision int64, opts kubernetes.PutOptions) int64 {
	opts.GetOnFailure = true
	resp, err := t.Client.Kubernetes.OptimisticPut(ctx, t.Key(name), []byte(value), revision, opts)
	t.Must(err, "update %s of revision %d", name, revision)
	if !resp.Succeeded {
		t.Failf("update %s of revision %d: refused, with %v as the present state", name, revision, resp.KV)
	}
	return resp.Revision
}

// Delete removes a key whose last revision is known, and returns the revision of the deletion.
func (t *T) Delete(ctx context.Context, name string, revision int64) int64 {
	resp, err := t.Client.Kubernetes.OptimisticDelete(ctx, t.Key(name), revision, deleteOrTell)
	t.Must(err, "delete %s of revision %d", name, revision)
	if !resp.Succeeded {
		t.Failf("delete %s of revision %d: refused, with %v as the present state", name, revision, resp.KV)
	}
	return resp.Revision
}

// Fill creates keys with a value each, and returns the last revision.
func (t *T) Fill(ctx context.Context, names ...string) (last int64) {
	for _, name := range names {
		last = t.Create(ctx, name, "of "+name)
	}
	return last
}

// Get reads a key at a revision; 0 means the present state. The key-value is nil if there is none.
func (t *T) Get(ctx context.Context, name string, revision int64) (*mvccpb.KeyValue, int64) {
	resp, err := t.Client.Kubernetes.Get(ctx, t.Key(name), kubernetes.GetOptions{Revision: revision})
	t.Must(err, "get %s at revision %d", name, revision)
	return resp.KV, resp.Revision
}

// List reads all keys below a name at a revision; 0 means the present state.
func (t *T) List(ctx context.Context, name string, revision int64) kubernetes.ListResponse {
	resp, err := t.Client.Kubernetes.List(ctx, t.Key(name), kubernetes.ListOptions{Revision: revision})
	t.Must(err, "list %s at revision %d", name, revision)
	return resp
}

// names returns the names of the keys, without the prefix.
func (t *T) names(kvs []*mvccpb.KeyValue) []string {
	names := []string{}
	for _, kv := range kvs {
		names = append(names, strings.TrimPrefix(string(kv.Key), t.Prefix))
	}
	return names
}

// numbered returns the names 0000, 0001 and so on, which sort in this order.
func numbered(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%04d", i)
	}
	return names
}

// text shows key-values for people.
func text(kvs ...*mvccpb.KeyValue) string {
	var all []string
	for _, kv := range kvs {
		if kv == nil {
			all = append(all, "nothing")
			continue
		}
		all = append(all, fmt.Sprintf("%s=%.40q (created %d, modified %d, version %d)", kv.Key, kv.Value,
			kv.CreateRevision, kv.ModRevision, kv.Version))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// Watch starts a watch of a key, or with clientv3.WithPrefix of all below it. It ends with
// the case. The watches of a case have a stream of their own: etcd's client panics if an answer
// about progress, which an earlier case may have asked for, comes in the moment in which the
// server ends a watch of the same stream (etcd-io/etcd#21969).
func (t *T) Watch(ctx context.Context, name string, opts ...clientv3.OpOption) *Watch {
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(ctx, "case", t.Prefix))
	t.watches = append(t.watches, cancel)
	return &Watch{t: t, name: name, ctx: ctx, Cancel: cancel, responses: t.Client.Watch(ctx, t.Key(name), opts...)}
}

// WatchAfter watches all below the case's prefix, from the revision after the given one, as
// an API server does.
func (t *T) WatchAfter(ctx context.Context, revision int64, opts ...clientv3.OpOption) *Watch {
	return t.Watch(ctx, "", append(opts, clientv3.WithPrefix(), clientv3.WithPrevKV(), clientv3.WithRev(revision+1))...)
}
