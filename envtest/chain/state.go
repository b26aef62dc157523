package chain

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	apistorage "k8s.io/apiserver/pkg/storage"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"

	"snowglobe.test/envtest/chain/inject"
	"snowglobe.test/envtest/chain/restore"
	"snowglobe.test/envtest/chain/reststorage"
	"snowglobe.test/envtest/chain/settle"
	"snowglobe.test/envtest/chain/upstream"
)

// state is what a restore, and a look at what is late, must know of the chain.
type state struct {
	storage *reststorage.Storage
	restore *restore.Server
	settle  *settle.Server
}

// observeState fills in the state once servers are built, before informers start.
func (c *Chain) observeState() error {
	c.caches.Find()
	c.state.restore = &restore.Server{
		Caches:        &c.caches,
		Storage:       c.state.storage,
		Prefix:        c.options.Etcd.StorageConfig.Prefix,
		IdentityLabel: controlplaneapiserver.IdentityLeaseComponentLabelKey,
		ServiceIP:     c.configs.kubeapi.Extra.APIServerServiceIP.String(),
	}
	c.state.settle = &settle.Server{
		Name:    c.cfg.Server,
		Storage: c.state.storage,
		Informers: []settle.StartedInformers{
			settle.Started(c.generic.informers),
			settle.Started(c.servers.apiextensions.Informers),
			settle.Started(c.servers.aggregator.APIRegistrationInformers),
		},
		InFlight: c.requests.InFlight,
		Faults:   c.cfg.Faults,
		Stopping: c.stopping,
	}
	c.state.restore.Await = c.state.settle.Await
	if err := c.followWrites(); err != nil {
		return err
	}
	if !c.crdsEnabled() {
		return nil
	}
	handler, err := upstream.CRDHandlerIn(c.servers.apiextensions.GenericAPIServer.Handler.NonGoRestfulMux)
	if err != nil {
		return err
	}
	informer := c.servers.apiextensions.Informers.Apiextensions().V1().CustomResourceDefinitions().Informer()
	c.state.restore.CRDs, err = restore.ObserveCRDs(informer, handler, c.polling.SchemasChange)
	return err
}

// followWrites lets settled writes, and a restore, wait for the handlers of the informers.
func (c *Chain) followWrites() error {
	return errors.Join(
		upstream.WrapHandlers(c.generic.informers, c.state.settle.Follow),
		upstream.WrapHandlers(c.servers.apiextensions.Informers, c.state.settle.Follow),
		upstream.WrapHandlers(c.servers.aggregator.APIRegistrationInformers, c.state.settle.Follow),
	)
}

// Storage returns the REST storage of the chain's servers.
func (c *Chain) Storage() *reststorage.Storage { return c.state.storage }

// RestoreServer returns what a restore must know of the chain.
func (c *Chain) RestoreServer() *restore.Server { return c.state.restore }

// SettleServer returns what tells whether the chain has anything left to do.
func (c *Chain) SettleServer() *settle.Server { return c.state.settle }

// afterWrite is reststorage.Config.AfterWrite. A server that is not ready yet waits for nothing, and
// neither do its own clients.
func (c *Chain) afterWrite() reststorage.AfterWrite {
	if !c.cfg.SettledWrites {
		return nil
	}
	return func(ctx context.Context, resource *reststorage.Resource, revision uint64, firstOfTwo bool) {
		who, ok := request.UserFrom(ctx)
		if !ok || who.GetName() == user.APIServerUser {
			return
		}
		select {
		case <-c.readySignal:
			c.state.settle.Await(ctx, resource, revision)
			if firstOfTwo {
				c.state.settle.AwaitWatchers(ctx, resource)
			}
		default:
		}
	}
}

// interceptCache is reststorage.Config.InterceptCache.
func (c *Chain) interceptCache(store apistorage.Interface, resource schema.GroupResource) (apistorage.Interface, func()) {
	if c.injector == nil {
		return store, func() {}
	}
	return inject.CacheSource(store, c.injector, resource)
}
