package restore

import (
	"context"
	"iter"
	"path"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"k8s.io/apimachinery/pkg/util/sets"

	"snowglobe.test/envtest/chain/reststorage"
)

// A second after a server has seen a CRD go, it ends the watches of its objects, and who was
// behind never hears of the rest. So a CRD goes after its objects; and these no faster than
// their watchers take them, as upstream's cache ends the watch of one that does not, and its
// client would come back to find no CRD.

// going are the CRDs that a restore is to delete, and custom resources.
type going struct {
	custom  sets.Set[string] // the names of all CRDs that the server knows
	crds    sets.Set[string] // the names of those to be deleted
	objects bool             // there are custom resources to be deleted
}

// keeps reports whether a key is to be deleted later, and notes that.
func (g *going) keeps(server *Server, key string, want *mvccpb.KeyValue) bool {
	switch {
	case want != nil:
		return false
	case server.isCRD(key):
		g.crds.Insert(path.Base(key))
		return true
	case g.custom.Has(server.resourceName(key)):
		g.objects = true
		return true
	}
	return false
}

// deleteLater deletes what going has kept: custom resources, and then CRDs.
func (r *restoration) deleteLater(ctx context.Context, g *going) error {
	for g.objects {
		if err := r.deleteObjects(ctx, g); err != nil {
			return err
		}
	}
	if len(g.crds) == 0 {
		return nil
	}
	return r.restore(ctx, func(key string, _, want *mvccpb.KeyValue) bool {
		return want != nil || !r.servers[0].isCRD(key)
	})
}

// deleteObjects deletes as many as the watchers of a resource whose CRD goes can take at
// once, and waits for these watchers.
func (r *restoration) deleteObjects(ctx context.Context, g *going) error {
	g.objects = false
	room := g.room(r.servers)
	err := r.restore(ctx, func(key string, _, want *mvccpb.KeyValue) bool {
		name := r.servers[0].resourceName(key)
		if want != nil || !g.custom.Has(name) {
			return true
		}
		left, limited := room[name]
		if !limited {
			return false
		}
		if left == 0 {
			g.objects = true
			return true
		}
		room[name]--
		return false
	})
	if err != nil {
		return err
	}
	for resource := range g.resources(r.servers) {
		if err := resource.WaitDelivered(ctx); err != nil {
			return err
		}
	}
	return nil
}

// room is how many objects of each CRD that goes may be deleted at once.
func (g *going) room(servers []*Server) map[string]int {
	room := map[string]int{}
	for resource := range g.resources(servers) {
		events, watched := resource.Room()
		if less, limited := room[resource.Name()]; watched && (!limited || events < less) {
			room[resource.Name()] = events
		}
	}
	return room
}

// resources are those of CRDs that go, as each server stores them.
func (g *going) resources(servers []*Server) iter.Seq[*reststorage.Resource] {
	return func(yield func(*reststorage.Resource) bool) {
		for _, server := range servers {
			for _, resource := range server.Storage.Resources() {
				if g.crds.Has(resource.Name()) && !yield(resource) {
					return
				}
			}
		}
	}
}
