package chain

import (
	"context"
	"fmt"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"
	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"

	"snowglobe.test/envtest/fault"
)

// Unsettled is what a chain has yet to do, without anybody asking for more.
type Unsettled struct {
	// Revision is that of the store.
	Revision int64
	// Behind says, for each watch cache that the store is ahead of, where both
	// are, and Informers for each informer of the chain that has not seen what
	// its watch cache has.
	Behind, Informers []string
	// Requests are those in flight, without the long-running ones.
	Requests []string
}

// List is all of it, a line each; first the requests, which are few, and what the
// rest may wait for.
func (u *Unsettled) List() []string { return slices.Concat(u.Requests, u.Behind, u.Informers) }

// Unsettled returns what the chain has yet to do, with an error what it knows of
// that. What is held is not, nor what waits for it. Nothing that is asked for here
// meets a rule.
func (c *Chain) Unsettled(ctx context.Context, held []fault.Held) (*Unsettled, error) {
	held = slices.DeleteFunc(slices.Clone(held), func(h fault.Held) bool { return h.Server != c.cfg.Server })
	u := &Unsettled{Requests: c.requests.InFlight(held)}
	revision, err := c.rest.revision(ctx)
	if err != nil {
		return u, err
	}
	u.Revision = revision
	informers := c.startedInformers()
	for _, resource := range c.rest.resources() {
		name := resource.name.String()
		if slices.ContainsFunc(held, func(h fault.Held) bool { return holdsCache(&h.Operation, name) }) {
			continue
		}
		have, err := resource.contents(ctx, len(informers[name]) > 0)
		switch {
		case ctx.Err() != nil:
			return u, context.Cause(ctx)
		case resource.destroyed():
		case err != nil:
			u.Behind = append(u.Behind, fmt.Sprintf("the watch cache of %s is not ready: %v", name, err))
		case have.revision < revision:
			u.Behind = append(u.Behind, fmt.Sprintf("the watch cache of %s is at revision %d, the store at %d", name, have.revision, revision))
		case slices.ContainsFunc(held, func(h fault.Held) bool { return holdsInformer(&h.Operation, name) }):
		default:
			for _, informer := range informers[name] {
				u.Informers = append(u.Informers, have.unseen(name, informer.GetStore().List())...)
			}
		}
	}
	return u, nil
}

// holdsCache reports whether a watch cache may be behind because an operation is
// held.
func holdsCache(op *fault.Operation, resource string) bool {
	switch op.Point {
	case "cache/" + resource:
		return true
	case "store/list", "store/watch-create", "store/watch-event", "store/progress":
		return op.Resource == resource
	}
	return false
}

// holdsInformer reports whether an informer may not have seen what its watch
// cache has because an operation is held.
func holdsInformer(op *fault.Operation, resource string) bool {
	switch op.Point {
	case "informer/" + resource, "watch/" + resource:
		return true
	case "http/list", "http/watch":
		return op.Resource == resource
	}
	return false
}

// RequestProgress asks the store to tell the chain's watch caches how far it is,
// as they do themselves for a consistent read.
func (c *Chain) RequestProgress(ctx context.Context) error {
	for _, resource := range c.rest.resources() {
		if err := c.rest.client.RequestProgress(ownStream(cacheStream(ctx), resource.name.String())); err != nil {
			return fmt.Errorf("ask the store how far it is: %w", err)
		}
	}
	return nil
}

// cacheStream returns a context of the stream on which upstream's watch caches
// watch, but for the resource.
func cacheStream(ctx context.Context) context.Context {
	if utilfeature.DefaultFeatureGate.Enabled(features.SeparateCacheWatchRPC) {
		ctx = metadata.NewOutgoingContext(ctx, metadata.Pairs("source", "cache"))
	}
	return clientv3.WithRequireLeader(ctx)
}

// revision is the store's.
func (s *restStorage) revision(ctx context.Context) (int64, error) {
	answer, err := s.client.KV.Get(ctx, "/", clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("ask the store for its revision: %w", err)
	}
	return answer.Header.Revision, nil
}

// resources returns the living resources that have a watch cache, by name.
func (s *restStorage) resources() []*cachedResource {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*cachedResource
	for _, resource := range s.caches {
		if !resource.destroyed() {
			all = append(all, resource)
		}
	}
	slices.SortFunc(all, func(a, b *cachedResource) int { return strings.Compare(a.name.String(), b.name.String()) })
	return all
}
