// Package reststorage makes the REST storage of every server of a chain on one
// shared etcd client, and keeps their watch caches. Upstream's own factory dials
// a gRPC connection for each of some seventy resources; the etcd3 store, the watch
// cache and the decoders are upstream's here all the same. It never decides what
// is stored, nor what happens to an operation on its way.
package reststorage

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/utils/clock"

	"snowglobe.test/envtest/fault/edge"
	"snowglobe.test/envtest/storage/intercept"
)

// MinEventsHistoryWindow is the least a watch cache keeps; upstream refuses less.
const MinEventsHistoryWindow = cacher.DefaultEventFreshDuration

// Config is what a Storage is made of.
type Config struct {
	// Connection is the server's to its store, required. The Storage attaches Client
	// to it, with Injector and Writes, which may be nil, and closes it.
	Connection *intercept.Connection
	Client     *kubernetes.Client
	Injector   *edge.Injector
	Writes     intercept.Writes
	// ServerList has Client's endpoints. A resource that is stored on other servers keeps
	// upstream's storage.
	ServerList []string
	// CompactionInterval is how often the store is compacted; zero is never.
	CompactionInterval time.Duration
	// EventsHistoryWindows is how long the watch caches of some resources keep events;
	// the others go by upstream's configuration.
	EventsHistoryWindows map[schema.GroupResource]time.Duration
	// InterceptCache wraps the store for the watch cache of a resource; the function that it
	// returns releases the wrapper. Nil means no wrapper.
	InterceptCache func(storage.Interface, schema.GroupResource) (storage.Interface, func())
	// AfterWrite may be nil.
	AfterWrite AfterWrite
}

// Storage is the storage of all resources of a chain. Make one with New.
type Storage struct {
	cfg       Config
	client    *kubernetes.Client // that rules do not reach
	clock     *cacheClock
	closeOnce sync.Once
	compactor interface { // nil if nothing is compacted
		etcd3.Compactor
		Stop()
	}

	mu        sync.Mutex
	resources map[string]*Resource // that have a watch cache, by the prefix of their keys
	made      int                  // how many storages have been made
	live      map[int]func()       // destroy functions of those not yet destroyed, by number
}

// New returns a Storage without resources, which Decorate's getter adds.
func New(cfg Config) *Storage {
	cfg.Client.KV = etcd3.NewETCDLatencyTracker(cfg.Client.KV)
	cfg.Connection.Attach(cfg.Client, cfg.Injector, cfg.Writes)
	s := &Storage{cfg: cfg, client: cfg.Connection.Direct(), clock: newCacheClock(), resources: map[string]*Resource{}, live: map[int]func(){}}
	if cfg.CompactionInterval > 0 {
		s.compactor = etcd3.NewCompactor(s.clientFor("", "").Client, cfg.CompactionInterval, clock.RealClock{}, nil)
	}
	return s
}

// Close destroys what is left of resources, stops the compactor and the watch caches' clock, and
// closes the connection. Only the first call does anything.
func (s *Storage) Close(ctx context.Context) (err error) {
	s.closeOnce.Do(func() {
		for _, destroy := range s.left() {
			destroy()
		}
		if s.compactor != nil {
			s.compactor.Stop()
		}
		err = s.cfg.Connection.Close(ctx)
		s.clock.stop()
	})
	return err
}

// left returns the destroy functions of the storages that nobody has destroyed yet, in the order
// in which the storages were made.
func (s *Storage) left() []func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []func()
	for _, key := range slices.Sorted(maps.Keys(s.live)) {
		all = append(all, s.live[key])
	}
	return all
}

// Client returns a client that rules do not reach, but for a partition.
func (s *Storage) Client() *kubernetes.Client { return s.client }

// clientFor returns the client of a resource whose keys have a prefix, or of none.
func (s *Storage) clientFor(resource, prefix string) *kubernetes.Client {
	return s.cfg.Connection.Client(intercept.Identity{Resource: resource, Prefix: prefix, Caller: callerOf})
}

// callerOf is the user whose request led to a call to the store.
func callerOf(ctx context.Context) string {
	if who, ok := request.UserFrom(ctx); ok {
		return who.GetName()
	}
	return ""
}

// Decorate returns upstream's getter, but makes the storage of every resource in
// the shared client's store on that client.
func (s *Storage) Decorate(upstream generic.RESTOptionsGetter, etcd *genericoptions.EtcdOptions) generic.RESTOptionsGetter {
	return &restOptionsGetter{RESTOptionsGetter: upstream, storage: s, etcd: etcd}
}

type restOptionsGetter struct {
	generic.RESTOptionsGetter
	storage *Storage
	etcd    *genericoptions.EtcdOptions
}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (g *restOptionsGetter) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	opts, err := g.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil || !slices.Equal(opts.StorageConfig.Transport.ServerList, g.storage.cfg.ServerList) {
		return opts, err // --etcd-servers-overrides may have put it elsewhere
	}
	sizes, err := genericoptions.ParseWatchCacheSizes(g.etcd.WatchCacheSizes)
	if err != nil {
		return opts, fmt.Errorf("watch cache sizes: %w", err)
	}
	// Upstream leaves a resource uncached whose size is set to zero.
	if size, sized := sizes[resource]; g.etcd.EnableWatchCache && (!sized || size > 0) {
		opts.Decorator = g.storage.cached
	} else {
		opts.Decorator = g.storage.undecorated
	}
	return opts, nil
}

// AddHealthChecks adds upstream's two etcd checks, by their names, on the shared
// client: upstream's own dial a gRPC connection each.
func (s *Storage) AddHealthChecks(config *genericapiserver.Config, etcd *genericoptions.EtcdOptions) {
	config.AddHealthChecks(healthz.NamedGroupedCheck("etcd", "etcd", s.check(etcd.StorageConfig.HealthcheckTimeout)))
	config.AddReadyzChecks(healthz.NamedGroupedCheck("etcd-readiness", "etcd-readiness", s.check(etcd.StorageConfig.ReadycheckTimeout)))
}

func (s *Storage) check(timeout time.Duration) func(*http.Request) error {
	timeout = cmp.Or(timeout, storagebackend.DefaultHealthcheckTimeout)
	client := s.clientFor("", "")
	return func(*http.Request) error { // upstream's does not end with the request either
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		if _, err := client.KV.Get(ctx, "/registry/health", clientv3.WithLimit(1)); err != nil {
			return fmt.Errorf("error getting data from etcd: %w", err)
		}
		return nil
	}
}

// CheckEventsHistoryWindows refuses a window of a resource without a watch cache.
// A resource of a group that is not served yet may come with a CRD.
func (s *Storage) CheckEventsHistoryWindows() error {
	groups, resources := map[string]bool{}, map[schema.GroupResource]bool{}
	for _, resource := range s.Resources() {
		groups[resource.name.Group], resources[resource.name] = true, true
	}
	for resource := range s.cfg.EventsHistoryWindows {
		if groups[resource.Group] && !resources[resource] {
			return fmt.Errorf("the window of the watch cache of %s: there is no such resource, or it has no watch cache", resource)
		}
	}
	return nil
}
