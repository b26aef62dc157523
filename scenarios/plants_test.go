package scenarios_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	etcd "go.etcd.io/etcd/client/v3/kubernetes"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/storage"
	"snowglobe.test/scenarios"
)

// plant is a bug, as options of a run, and what it causes.
type plant struct {
	causes  *regexp.Regexp // the failures
	shown   string         // a rule under which it makes the neutral script fail
	options func() scenarios.Options
}

// plants are by their names. Each takes a protection away that only some orders of
// events need.
var plants = map[string]plant{
	// A server says that it knows all paths after a second and a half, by when it mostly
	// has read its definitions, and does not wait until it has.
	"404-before-sync": {
		causes: regexp.MustCompile(`answered with 404|never: `),
		shown:  `delay informer/customresourcedefinitions.apiextensions.k8s.io by=3s`,
		options: func() scenarios.Options {
			return scenarios.Options{Servers: []envtest.Option{envtest.WithFaults("fire signal/MuxAndDiscoveryComplete by=1.5s")}}
		},
	},
	// A watch of the store begins with what is new, and not where the list before it ended.
	"lost-between-list-and-watch": {
		causes: regexp.MustCompile(`lister |linearizability|monotonic|list-watch|watch: `),
		shown:  `cancel store/watch-event resource=configmaps nth=4`,
		options: func() scenarios.Options {
			return scenarios.Options{Store: wrapClients(func(c *etcd.Client) { c.Client.Watcher = forgetful{c.Client.Watcher} })}
		},
	},
	// A server asks the store no more than every three seconds how far it is: the other
	// server may have been told of a write since.
	"stale-after-failover": {
		causes: regexp.MustCompile(`linearizability|monotonic|list-watch`),
		shown:  `delay store/watch-event resource=configmaps by=1s`,
		options: func() scenarios.Options {
			return scenarios.Options{Store: wrapClients(func(c *etcd.Client) { c.Kubernetes = &complacent{Interface: c.Kubernetes} })}
		},
	},
	// A hook writes once, with little patience, and does not try again while admission is
	// not ready.
	"hook-before-admission": {
		causes: regexp.MustCompile(`example/hasty`),
		shown:  `delay store/list resource=namespaces by=3s`,
		options: func() scenarios.Options {
			return scenarios.Options{Servers: []envtest.Option{envtest.WithPostStartHook("example/hasty", writeOnce)}}
		},
	},
	// A watch of the store that is resumed begins with the last event that it has had.
	"twice-on-resume": {
		causes: regexp.MustCompile(`^watch: `),
		shown:  `cancel store/watch-event resource=widgets.example.com nth=4`,
		options: func() scenarios.Options {
			return scenarios.Options{Store: wrapClients(func(c *etcd.Client) {
				c.Client.Watcher = &stutter{Watcher: c.Client.Watcher, had: map[string][]int64{}}
			})}
		},
	},
}

// wrapClients changes each client of a store.
func wrapClients(change func(*etcd.Client)) func(storage.Backend) storage.Backend {
	return func(store storage.Backend) storage.Backend { return planted{store, change} }
}

type planted struct {
	storage.Backend
	change func(*etcd.Client)
}

func (p planted) Client() (*etcd.Client, error) {
	client, err := p.Backend.Client()
	if err == nil {
		p.change(client)
	}
	return client, err
}

// forgetful begins all watches at the newest revision.
type forgetful struct{ clientv3.Watcher }

func (f forgetful) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	return f.Watcher.Watch(ctx, key, append(opts, clientv3.WithRev(0))...)
}

// stutter begins a watch of a key that is resumed with the event before, which the one
// before it had.
type stutter struct {
	clientv3.Watcher
	mu  sync.Mutex
	had map[string][]int64 // revisions of events, by key
}

func (s *stutter) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := clientv3.OpGet(key, opts...).Rev()
	for _, revision := range slices.Backward(s.had[key]) {
		if revision < next {
			opts = append(opts, clientv3.WithRev(revision))
			break
		}
	}
	heard, told := s.Watcher.Watch(ctx, key, opts...), make(chan clientv3.WatchResponse)
	go func() {
		defer close(told)
		for response := range heard {
			select {
			case told <- response:
				s.remember(key, response)
			case <-ctx.Done():
			}
		}
	}()
	return told
}

func (s *stutter) remember(key string, response clientv3.WatchResponse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, event := range response.Events {
		s.had[key] = append(s.had[key], event.Kv.ModRevision)
	}
}

// complacent remembers for a while how far the store is: what has no object is the
// question for that.
type complacent struct {
	etcd.Interface
	mu       sync.Mutex
	revision int64
	asked    time.Time
}

const complacency = 3 * time.Second

func (c *complacent) Get(ctx context.Context, key string, opts etcd.GetOptions) (etcd.GetResponse, error) {
	response, err := c.Interface.Get(ctx, key, opts)
	if err != nil || response.KV != nil {
		return response, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); c.revision == 0 || now.Sub(c.asked) > complacency {
		c.revision, c.asked = response.Revision, now
	}
	response.Revision = c.revision
	return response, nil
}

// patience is how long the hook waits for its one write.
const patience = 2 * time.Second

// writeOnce writes an object, once.
func writeOnce(ctx context.Context, loopback *rest.Config) error {
	client, err := kubernetes.NewForConfig(loopback)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	object := &networkingv1.IngressClass{
		ObjectMeta: metav1.ObjectMeta{Name: "hasty"},
		Spec:       networkingv1.IngressClassSpec{Controller: "example.com/hasty"},
	}
	_, err = client.NetworkingV1().IngressClasses().Create(limited, object, metav1.CreateOptions{})
	if err == nil || apierrors.IsAlreadyExists(err) || ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("write: %w", err)
}
