package restore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kube-aggregator/pkg/controllers/autoregister"

	"snowglobe.test/envtest/chain/reststorage"
	"snowglobe.test/envtest/storage"
)

// Server is what a restore must know of an API server.
type Server struct {
	// Caches are those in which it keeps answers for some time.
	Caches Caches
	// Storage has its watch caches, and a client of the store.
	Storage *reststorage.Storage
	// Await waits until its informers have seen a revision of a resource; it may be nil.
	Await func(ctx context.Context, resource *reststorage.Resource, revision uint64)
	// CRDs are the CRDs as the server sees them; nil if their API is off.
	CRDs *CRDObserver
	// Prefix begins all keys of the server, as of --etcd-prefix.
	Prefix string
	// IdentityLabel is that of the leases by which servers tell that they are alive.
	IdentityLabel string
	// ServiceIP is that of the service default/kubernetes.
	ServiceIP string

	// unseen are changes the server may not have seen. The running Restore owns them.
	unseen []storage.Change
}

// Caches are caches that can be emptied.
type Caches interface {
	Names() []string
	Empty()
}

// How the keys begin, behind the prefix, of objects that a server acts upon by itself.
const (
	apiServices = "apiregistration.k8s.io/apiservices/"
	crds        = "apiextensions.k8s.io/customresourcedefinitions/"
)

// key returns the whole key of what is behind the prefix.
func (s *Server) key(object string) string { return path.Join("/", s.Prefix) + "/" + object }

// object is a key without the server's prefix; ok is false for another program's.
func (s *Server) object(key string) (object string, ok bool) {
	return strings.CutPrefix(key, s.key(""))
}

// isHeartbeat reports whether an object is a lease by which a server tells that it is
// alive. Labels can be read in any encoding.
func (s *Server) isHeartbeat(object string, have, want *mvccpb.KeyValue) bool {
	switch {
	case strings.HasPrefix(object, "masterleases/"), strings.HasPrefix(object, "peerserverleases/"):
		return true
	case strings.HasPrefix(object, "leases/kube-system/"):
		label := []byte(s.IdentityLabel)
		return bytes.Contains(have.GetValue(), label) || bytes.Contains(want.GetValue(), label)
	}
	return false
}

// isBackgroundObject reports whether a server creates an object in the background,
// maybe only after it is ready, and again if it is missing.
func (s *Server) isBackgroundObject(object string) bool {
	return slices.Contains(backgroundObjects, object) || object == "ipaddresses/"+s.ServiceIP
}

var backgroundObjects = []string{
	"configmaps/kube-system/extension-apiserver-authentication",
	"configmaps/kube-system/kube-apiserver-legacy-service-account-token-tracking",
	"endpointslices/default/kubernetes",
	"namespaces/default",
	"namespaces/kube-node-lease",
	"namespaces/kube-public",
	"namespaces/kube-system",
	"servicecidrs/kubernetes",
	"services/endpoints/default/kubernetes",
	"services/specs/default/kubernetes",
}

func (s *Server) isCRD(key string) bool { return strings.HasPrefix(key, s.key(crds)) }

// customResources are the resources of all CRDs that the server knows, such as
// "widgets.example.com".
func (s *Server) customResources() sets.Set[string] {
	names := sets.New[string]()
	if s.CRDs != nil {
		for _, crd := range s.CRDs.crds() {
			names.Insert(crd.Name)
		}
	}
	return names
}

// resourceName is the resource that a key is of, empty if the server keeps none there.
func (s *Server) resourceName(key string) string {
	if resource := s.Storage.ResourceOf(key); resource != nil {
		return resource.Name()
	}
	return ""
}

// isAPIServiceOfCRD reports whether a key is of an APIService that the aggregator
// keeps while there are CRDs for it. Those of built-in groups it creates once, when
// it starts, with another value of the label.
func (s *Server) isAPIServiceOfCRD(kv *mvccpb.KeyValue) bool {
	return s.CRDs != nil && kv != nil && strings.HasPrefix(string(kv.Key), s.key(apiServices)) &&
		bytes.Contains(kv.Value, []byte(autoregister.AutoRegisterManagedLabel)) && !bytes.Contains(kv.Value, []byte("onstart"))
}

// waitSeen waits until watch caches, informers and CRD handler have seen all of unseen.
func (s *Server) waitSeen(ctx context.Context) error {
	last := map[*reststorage.Resource]storage.Change{}
	for _, change := range s.unseen {
		if resource := s.Storage.ResourceOf(change.Key); resource != nil {
			last[resource] = change // they come in the order of their revisions
		}
	}
	for resource, change := range last {
		if err := resource.WaitFresh(ctx, change.Key, change.Revision); err != nil {
			return err
		}
		if s.Await != nil {
			s.Await(ctx, resource, uint64(change.Revision))
		}
	}
	for _, change := range s.unseen {
		if name, ok := strings.CutPrefix(change.Key, s.key(crds)); ok {
			if err := s.CRDs.wait(ctx, name, change.Revision, change.Deleted); err != nil {
				return err
			}
		}
	}
	s.unseen = nil
	return nil
}

// waitAPIServices waits until CRDs being deleted are gone, and those in the store,
// and no others, have APIServices: the aggregator then acts upon nothing that is
// gone during or after a restore.
func (s *Server) waitAPIServices(ctx context.Context) error {
	if s.CRDs == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var watch clientv3.WatchChan // nil until something is late
	for {
		changed := s.CRDs.changed.Next()
		late, revision, err := s.lateCRDs(ctx)
		if late == "" || err != nil {
			return err
		}
		if watch == nil {
			watch = s.Storage.Client().Watch(ctx, s.key(apiServices), clientv3.WithPrefix(), clientv3.WithRev(revision+1))
		}
		select {
		case <-changed:
		case response, ok := <-watch:
			if err = response.Err(); err == nil && !ok {
				err = errors.New("the store ended the watch")
			}
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", late, err)
		}
	}
}

// lateCRDs says what the server has yet to do about CRDs, empty if nothing, and the
// revision of the store at which it is so.
func (s *Server) lateCRDs(ctx context.Context) (late string, revision int64, err error) {
	client := s.Storage.Client()
	stored, err := client.KV.Get(ctx, s.key(crds), clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return "", 0, fmt.Errorf("list the CRDs: %w", err)
	}
	revisions := map[string]int64{}
	for _, kv := range stored.Kvs {
		revisions[strings.TrimPrefix(string(kv.Key), s.key(crds))] = kv.ModRevision
	}
	if late := s.CRDs.behind(revisions); late != "" {
		return late, stored.Header.Revision, nil
	}
	found, err := client.KV.Get(ctx, s.key(apiServices), clientv3.WithPrefix())
	if err != nil {
		return "", 0, fmt.Errorf("list the APIServices: %w", err)
	}
	served, missing := s.CRDs.served(), s.CRDs.served()
	for _, kv := range found.Kvs {
		name := strings.TrimPrefix(string(kv.Key), s.key(apiServices))
		missing.Delete(name)
		if s.isAPIServiceOfCRD(kv) && !served.Has(name) {
			return fmt.Sprintf("the aggregator has not deleted APIService %s, whose CRDs are gone", name), found.Header.Revision, nil
		}
	}
	if len(missing) > 0 {
		return fmt.Sprintf("the aggregator has not created APIService %s of a CRD", sets.List(missing)[0]), found.Header.Revision, nil
	}
	return "", 0, nil
}
