// Package settle tells what a running API server has yet to do by itself: Unsettled looks, and
// waits for nothing. Await waits until the server knows of one write.
package settle

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/client-go/tools/cache"

	"snowglobe.test/envtest/chain/reststorage"
	"snowglobe.test/envtest/fault"
)

// Server is an API server, with all of it that can have something to do.
type Server struct {
	// Name is what rules call it.
	Name string
	// Storage has its watch caches.
	Storage *reststorage.Storage
	// Informers are those of its informer factories.
	Informers []StartedInformers
	// InFlight returns the requests it is handling, a line each, without the
	// long-running ones and those that wait for what is held.
	InFlight func(held []fault.Held) []string
	// Faults are the rules about it; nil if there are none.
	Faults *fault.Set
	// Stopping ends before the informers stop; Await then waits for nothing.
	Stopping context.Context

	followed followed
}

// Unsettled is what a server has yet to do by itself.
type Unsettled struct {
	// Revision is that of the store.
	Revision int64
	// Late has a line for each request in flight, which the rest may be waiting for;
	// then, by resource, for a watch cache behind the store, or for each object that
	// an informer has not seen as its watch cache has it.
	Late []string
}

// Unsettled returns what the server has yet to do, with an error as far as known.
// What is held, and what waits for it, does not count. Its own reads meet no rule.
func (s *Server) Unsettled(ctx context.Context, held []fault.Held) (*Unsettled, error) {
	held = slices.DeleteFunc(slices.Clone(held), func(h fault.Held) bool { return h.Server != s.Name })
	u := &Unsettled{Late: s.InFlight(held)}
	var err error
	if u.Revision, err = s.Storage.Revision(ctx); err != nil {
		return u, fmt.Errorf("the store has not told its revision: %w", err)
	}
	started := s.startedInformers()
	for _, resource := range s.Storage.Resources() {
		name := resource.Name()
		if slices.ContainsFunc(held, func(h fault.Held) bool { return holdsCache(&h.Operation, name) }) {
			continue
		}
		informers := started[name]
		if slices.ContainsFunc(held, func(h fault.Held) bool { return holdsInformer(&h.Operation, name) }) {
			informers = nil
		}
		if err := u.add(ctx, resource, informers); err != nil {
			return u, err
		}
	}
	return u, nil
}

func (s *Server) startedInformers() map[string][]cache.SharedIndexInformer {
	informers := map[string][]cache.SharedIndexInformer{}
	for _, started := range s.Informers {
		for resource, informer := range started() {
			informers[resource] = append(informers[resource], informer)
		}
	}
	return informers
}

// add adds what a watch cache, and the informers of its resource, have not seen.
func (u *Unsettled) add(ctx context.Context, resource *reststorage.Resource, informers []cache.SharedIndexInformer) error {
	revision, objects, err := resource.Cached(ctx, len(informers) > 0)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("the watch cache of %s has not answered: %w", resource.Name(), context.Cause(ctx))
	case resource.Destroyed():
	case err != nil:
		u.Late = append(u.Late, fmt.Sprintf("the watch cache of %s is not ready: %v", resource.Name(), err))
	case revision < u.Revision:
		u.Late = append(u.Late, fmt.Sprintf("the watch cache of %s is at revision %d, the store at %d", resource.Name(), revision, u.Revision))
	default:
		for _, informer := range informers {
			lines, err := behind(resource.Name(), objects, informer.GetStore().List())
			if err != nil {
				return err
			}
			u.Late = append(u.Late, lines...)
		}
	}
	return nil
}

// holdsCache reports whether a held operation may keep a watch cache behind.
func holdsCache(op *fault.Operation, resource string) bool {
	switch op.Point {
	case fault.CachePoint + resource:
		return true
	case fault.StoreList, fault.StoreWatchCreate, fault.StoreWatchEvent, fault.StoreProgress:
		return op.Resource == resource
	}
	return false
}

// holdsInformer reports whether a held operation may keep an informer behind.
func holdsInformer(op *fault.Operation, resource string) bool {
	switch op.Point {
	case fault.InformerPoint + resource, fault.WatchPoint + resource:
		return true
	case fault.HTTPPoint + "list", fault.HTTPPoint + "watch":
		return op.Resource == resource
	}
	return false
}
