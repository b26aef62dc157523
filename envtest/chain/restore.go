package chain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	apistorage "k8s.io/apiserver/pkg/storage"
	"k8s.io/kube-aggregator/pkg/controllers/autoregister"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"

	"snowglobe.test/envtest/storage"
)

// demanded says whether a key is of an APIService that the aggregator would make
// again for the CRDs there are.
func (c *Chain) demanded(key string, have *mvccpb.KeyValue) bool {
	name, ok := strings.CutPrefix(key, c.folder(apiServiceFolder))
	version, group, _ := strings.Cut(name, ".")
	return ok && followsCRDs(have.GetValue()) && c.crds != nil && c.crds.serves(group, version)
}

// Booted says that the boot is over: what the server makes from now on, it makes
// because of others, or will make again.
func (c *Chain) Booted() { c.rest.writes.boot() }

// keeps says which keys of the store a restore leaves alone: those outside the
// chain's prefix; the leases by which running servers tell that they are alive;
// what the server has made of objects that nobody else has written; and what it
// writes in the background a moment after it is ready, if the snapshot is from
// before.
func (c *Chain) keeps(key string, have, want *mvccpb.KeyValue) bool {
	resource, ours := strings.CutPrefix(key, c.folder(""))
	switch {
	case !ours:
		return true
	case strings.HasPrefix(resource, "masterleases/"), strings.HasPrefix(resource, "peerserverleases/"):
		return true
	case strings.HasPrefix(resource, "leases/kube-system/"):
		return isIdentity(have.GetValue()) || isIdentity(want.GetValue())
	}
	if have != nil && want != nil && c.rest.writes.wrote(have) {
		return true
	}
	return want == nil && c.isLate(resource)
}

// folder returns the start of all keys of a folder of the chain's.
func (c *Chain) folder(name string) string {
	return path.Join("/", c.options.Etcd.StorageConfig.Prefix, name) + "/"
}

// The folders whose objects the chain acts upon by itself.
const (
	apiServiceFolder = "apiregistration.k8s.io/apiservices"
	crdFolder        = "apiextensions.k8s.io/customresourcedefinitions"
)

// isIdentity says whether an encoded Lease is one by which a server tells that it
// is alive. Labels can be read in any encoding.
func isIdentity(lease []byte) bool {
	return bytes.Contains(lease, []byte(controlplaneapiserver.IdentityLeaseComponentLabelKey))
}

// followsCRDs says whether an encoded APIService is one that the aggregator keeps
// as long as there are CRDs for it; those of built-in groups it makes once, at
// its start, with the label's other value.
func followsCRDs(apiService []byte) bool {
	return bytes.Contains(apiService, []byte(autoregister.AutoRegisterManagedLabel)) && !bytes.Contains(apiService, []byte("onstart"))
}

// isLate says whether a key is of an object that a server writes by itself in the
// background, maybe only after it is ready, and writes again if it is missing.
func (c *Chain) isLate(resource string) bool {
	return slices.Contains(lateObjects, resource) || resource == "ipaddresses/"+c.configs.kubeapi.Extra.APIServerServiceIP.String()
}

var lateObjects = []string{
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

// converge waits until the chain has taken notice of changes, and of those of
// earlier restores for which the wait was cut short.
func (c *Chain) converge(ctx context.Context, changes []storage.Change) error {
	c.unnoticed = append(c.unnoticed, changes...)
	if err := c.rest.converge(ctx, c.unnoticed); err != nil {
		return err
	}
	for _, change := range c.unnoticed {
		if name, ok := strings.CutPrefix(change.Key, c.folder(crdFolder)); ok && c.crds != nil {
			if err := c.crds.wait(ctx, name, change.Revision, change.Deleted); err != nil {
				return err
			}
		}
	}
	c.unnoticed = nil
	return nil
}

// settleCRDs waits until CRDs that are being deleted are gone, and the aggregator
// has followed those that are in the store, so that it does not act upon what is
// gone while, or after, the store is brought back.
func (c *Chain) settleCRDs(ctx context.Context) error {
	if c.crds == nil {
		return nil
	}
	if err := c.crds.settle(ctx, c.storedCRDs); err != nil {
		return err
	}
	services, err := c.rest.client.KV.Get(ctx, c.folder(apiServiceFolder), clientv3.WithPrefix())
	if err != nil {
		return fmt.Errorf("list the APIServices: %w", err)
	}
	unseen := c.crds.groupVersions()
	for _, kv := range services.Kvs {
		name := strings.TrimPrefix(string(kv.Key), c.folder(apiServiceFolder))
		if followsCRDs(kv.Value) && !unseen[name] {
			err = c.waitAPIService(ctx, apiService{name: name, key: string(kv.Key)})
		}
		delete(unseen, name)
		if err != nil {
			return err
		}
	}
	for name := range unseen {
		if err := c.waitAPIService(ctx, apiService{name: name, key: c.folder(apiServiceFolder) + name, wanted: true}); err != nil {
			return err
		}
	}
	return nil
}

// storedCRDs returns the revisions of the CRDs in the store, by name.
func (c *Chain) storedCRDs(ctx context.Context) (map[string]int64, error) {
	stored, err := c.rest.client.KV.Get(ctx, c.folder(crdFolder), clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return nil, fmt.Errorf("list the CRDs: %w", err)
	}
	revisions := map[string]int64{}
	for _, kv := range stored.Kvs {
		revisions[strings.TrimPrefix(string(kv.Key), c.folder(crdFolder))] = kv.ModRevision
	}
	return revisions, nil
}

// apiService is one that the aggregator keeps for CRDs.
type apiService struct {
	name   string // version.group
	key    string
	wanted bool // the snapshot has it
}

// waitAPIService waits until the aggregator has made or deleted an APIService, as
// the CRDs that it now sees demand.
func (c *Chain) waitAPIService(ctx context.Context, service apiService) error {
	version, group, _ := strings.Cut(service.name, ".")
	if c.crds == nil || c.crds.serves(group, version) != service.wanted {
		return nil // it was there without its CRDs, or they without it
	}
	if err := c.waitKey(ctx, service.key, service.wanted); err != nil {
		return fmt.Errorf("the aggregator has not followed the CRDs of APIService %s: %w", service.name, err)
	}
	return nil
}

// waitKey waits until a key is in the store, or is not.
func (c *Chain) waitKey(ctx context.Context, key string, there bool) error {
	now, err := c.rest.client.KV.Get(ctx, key, clientv3.WithKeysOnly())
	if err != nil || (now.Count > 0) == there {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for response := range c.rest.client.Watch(ctx, key, clientv3.WithRev(now.Header.Revision+1)) {
		if err := response.Err(); err != nil {
			return err
		}
		for _, event := range response.Events {
			if (event.Type == clientv3.EventTypePut) == there {
				return nil
			}
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.New("the store ended the watch")
}

// converge waits until the watch cache of each resource has seen its last change.
func (s *restStorage) converge(ctx context.Context, changes []storage.Change) error {
	last := map[*cachedResource]storage.Change{}
	for _, change := range changes {
		if resource := s.cacheOf(change.Key); resource != nil {
			last[resource] = change // they come in the order of their revisions
		}
	}
	for resource, change := range last {
		if err := resource.waitFor(ctx, change); err != nil {
			return fmt.Errorf("the watch cache of %s has not caught up: %w", resource.name, err)
		}
	}
	return nil
}

// waitFor reads a changed key at no less than the change's revision, which the
// cache answers when it is there.
func (r *cachedResource) waitFor(ctx context.Context, change storage.Change) error {
	opts := apistorage.GetOptions{IgnoreNotFound: true, ResourceVersion: strconv.FormatInt(change.Revision, 10)}
	for {
		err := r.store.Get(ctx, strings.TrimPrefix(change.Key, r.prefix), opts, r.newFunc())
		switch {
		case err == nil, r.destroyed(): // a CRD's, gone with it
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !apistorage.IsTooLargeResourceVersion(err): // that is: not within upstream's three seconds
			return err
		}
	}
}
