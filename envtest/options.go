package envtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"snowglobe.test/envtest/chain/reststorage"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/storage/memory"
	"snowglobe.test/envtest/trace"
	"snowglobe.test/envtest/virtualtime"
)

// An Option says how a control plane differs from the default one.
type Option func(*config)

// config is what the options of a control plane add up to.
type config struct {
	store         storage.Backend
	sharedStore   bool
	flags         []string
	flagWebhooks  []flagWebhook
	crds          []*apiextensionsv1.CustomResourceDefinition
	crdPaths      []string
	hooks         map[string]func(context.Context, *rest.Config) error
	faults        fault.Plan
	seed          uint64
	seeded        bool
	noLatency     bool
	steps         []string // of the order, nil for none
	fullTrace     bool
	withoutFaults bool // tests only: without the injectors
	promptHooks   bool // tests only: in virtual time too
	clock         *time.Time

	withoutHousekeeping bool
	settledWrites       *bool // nil for the default

	cacheWindows map[schema.GroupResource]time.Duration
	listen       string
	dial         func(ctx context.Context, network, address string) (net.Conn, error)
	kubeconfig   string
	pki          string
	log          io.Writer
	observers    []func(trace.Record)
	timeouts     timeouts
	replicas     int
	errs         []error
}

func newConfig(opts []Option) (*config, error) {
	c := &config{
		cacheWindows: map[schema.GroupResource]time.Duration{},
		timeouts:     timeouts{start: time.Minute, stop: defaultStop()},
		replicas:     1,
	}
	for _, opt := range opts {
		opt(c)
	}
	c.takeGivenSeed()
	c.checkReplicas()
	return c, errors.Join(c.errs...)
}

func (c *config) refuse(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(format, args...))
}

// WithStore puts the control plane on a store that it starts and stops: embedded.New(...),
// external.New(...), or memory.New(...), the default; a storage.Shared is the caller's to
// start and to stop.
func WithStore(store storage.Backend) Option {
	return func(c *config) {
		shared, isShared := store.(storage.Shared)
		if isShared {
			store = shared.Backend
		}
		c.store, c.sharedStore = store, isShared
	}
}

// WithFlags passes kube-apiserver flags, such as "--feature-gates=...". Upstream's
// own code parses and validates them before anything starts; later ones win. What they leave
// alone is as chain.Defaults says, and a list that they give replaces its default, as with
// kube-apiserver. The ServiceAccount admission plugin is off unless they enable it.
func WithFlags(flags ...string) Option {
	return func(c *config) { c.flags = append(c.flags, flags...) }
}

// WithCRDs installs definitions and waits until they are established.
func WithCRDs(crds ...*apiextensionsv1.CustomResourceDefinition) Option {
	return func(c *config) { c.crds = append(c.crds, crds...) }
}

// WithCRDPaths installs the definitions in YAML or JSON files, and in such files
// directly in folders. Files in a folder may also hold other objects; a file that is
// named itself must hold a definition.
func WithCRDPaths(paths ...string) Option {
	return func(c *config) { c.crdPaths = append(c.crdPaths, paths...) }
}

// WithObserver calls f for every event of the trace, in order, starting with the first
// one. f must return quickly and must not call the control plane.
func WithObserver(f func(trace.Record)) Option {
	return func(c *config) { c.observers = append(c.observers, f) }
}

// WithFaults adds fault rules from the start, each a line of text (see fault.Rule), or
// several as the text of a fault.Plan. ControlPlane.Faults can add more later. If a rule
// that is not optional never fires, Stop returns an error, which fails the test.
func WithFaults(rules ...string) Option {
	return func(c *config) {
		for _, rule := range rules {
			plan, err := parseFaults(rule)
			c.faults, c.errs = append(c.faults, plan...), append(c.errs, err)
		}
	}
}

// parseFaults parses one rule, or several lines. Errors say which rule they are about.
func parseFaults(text string) (fault.Plan, error) {
	name := "WithFaults"
	if rule := strings.TrimSpace(text); !strings.Contains(rule, "\n") {
		name = fmt.Sprintf("WithFaults: %q", rule)
	}
	return fault.ParsePlan(name, text, nil)
}

// WithSeed decides what is left to chance: which operations a rule with a
// probability hits and, in virtual time, whose turn it is (ControlPlane.Schedule).
// By default the seed is 0, and operations run in the order in which they arrive. In a test,
// the seed of "snowglobe test --seed" takes its place.
func WithSeed(seed uint64) Option {
	return func(c *config) { c.seed, c.seeded = seed, true }
}

// WithoutLatency makes requests and store calls take no virtual time. By default each
// takes between virtualtime.MinLatency and virtualtime.MaxLatency, depending on the seed, so that a
// loop without a pause, of which upstream has some, does not stop the clock.
func WithoutLatency() Option { return func(c *config) { c.noLatency = true } }

// WithClock sets the clock of virtual time before the control plane starts: in a bubble it begins
// at 2000-01-01T00:00:00Z, and certificates and fixtures of today are not valid yet. It can only
// go forward. In real time the control plane does not start.
func WithClock(begin time.Time) Option {
	return func(c *config) { c.clock = &begin }
}

// WithOrder gives operations in virtual time their turns in the order of steps, starting
// with the first operation of the boot; see ControlPlane.Schedule, which begins later.
func WithOrder(steps ...string) Option {
	return func(c *config) { c.steps = append(c.steps, steps...) }
}

// WithDialer says how the API servers reach the outside: admission, conversion,
// authentication and audit webhooks, aggregated servers, nodes and token issuers. The
// address is HOST:PORT, and the connection may be in memory, which is the only kind that
// works in virtual time. Hosts of ControlPlane.Webhooks take precedence. Rules of
// "egress" are applied before the dialer is called. If flags name an egress selector, the
// dialer reaches its proxies instead. It always reaches KMS v2 plugins: for those that
// listen on a Unix socket, the network is "unix" and the address is a path. The default is
// the machine's network.
func WithDialer(dial func(ctx context.Context, network, address string) (net.Conn, error)) Option {
	return func(c *config) { c.dial = dial }
}

// WithFullTrace adds to the trace what each client inside the process is told, every
// change in the store and every turn: everything that trace.WriteCanonical can show.
func WithFullTrace() Option {
	return func(c *config) { c.fullTrace = true }
}

// WithoutHousekeeping is for tests that span days of virtual time. It leaves out what an
// API server does periodically without being asked: watch caches, compaction and counting
// of the store, priority and fairness, mutating admission policies, asking which server
// knows which version, and the metrics of work queues, including those that the test makes.
// What can't be left out becomes rare: the server renews its identity lease every ten
// minutes instead of every ten seconds, and its own watches, and other watches for which
// the client sets no timeout, last for a day instead of minutes. Flags from WithFlags take
// precedence. Control planes that run side by side must agree on this option.
func WithoutHousekeeping() Option {
	return func(c *config) { c.withoutHousekeeping = true }
}

// WithSettledWrites says whether the answer to a write waits until the server's own watch caches and
// informers have the write, and their handlers have dealt with it. If it does not wait, a client can
// be faster than the server that it asks: it creates a RoleBinding, uses it at once, and is refused.
// On etcd in another process, with its millisecond for a commit, that hardly ever happens. The
// default is to wait in real time, and not to in virtual time, in which such races are looked for.
// Nothing waits for what a rule may hold up, and no write for more than three seconds. A Pod on no node
// is deleted by two writes: between them, those who watch Pods have five milliseconds. Policies are
// known within a second with or without it, as on any server, which looks for them by the clock.
func WithSettledWrites(settled bool) Option {
	return func(c *config) { c.settledWrites = &settled }
}

// WithPostStartHook adds a post-start hook to every server, in addition to upstream's. It
// gets the server's own client configuration and a context that ends with the server. Like
// upstream's hooks, it ends the server if it fails, and the server is not ready until it
// has returned.
func WithPostStartHook(name string, hook func(ctx context.Context, loopback *rest.Config) error) Option {
	return func(c *config) {
		if c.hooks[name] != nil {
			c.refuse("there are two post-start hooks %q", name)
		}
		if c.hooks == nil {
			c.hooks = map[string]func(context.Context, *rest.Config) error{}
		}
		c.hooks[name] = hook
	}
}

// WithWatchCacheWindow makes a resource's watch cache keep events for at least this
// long, so that a watch may begin that far back. Upstream's 75 seconds are the
// default and the minimum.
func WithWatchCacheWindow(resource schema.GroupResource, window time.Duration) Option {
	return func(c *config) {
		if window < reststorage.MinEventsHistoryWindow {
			c.refuse("the window of the watch cache of %s is %s; upstream takes no less than %s", resource, window, reststorage.MinEventsHistoryWindow)
		}
		c.cacheWindows[resource] = window
	}
}

// WithListener also serves TLS on a loopback address ("127.0.0.1:0" for a free port; "localhost:0" is
// ::1 on a machine that has no other). It can't be used in virtual time.
func WithListener(address string) Option {
	return func(c *config) { c.listen = address }
}

// WithKubeconfig writes a cluster admin's kubeconfig to path, mode 0600, and
// implies a listener on a free port. Stop removes the file.
func WithKubeconfig(path string) Option {
	return func(c *config) { c.kubeconfig = path }
}

// WithPKI keeps the keys that credentials are made with in a folder, under kubeadm's names:
// the certificate authority in ca.crt and ca.key, that of the front proxy in front-proxy-ca.crt
// and front-proxy-ca.key, and the service account token key in sa.key and sa.pub. Start creates whatever is missing. With the existing files, kubeconfigs
// and tokens from an earlier control plane stay valid, and a kube-controller-manager can
// sign.
func WithPKI(folder string) Option {
	return func(c *config) { c.pki = folder }
}

// WithLog copies the API server's log to w as it is written; see ControlPlane.Log.
func WithLog(w io.Writer) Option {
	return func(c *config) { c.log = w }
}

// WithTimeouts bounds the start, until the server is ready, the installation of CRDs after
// it, which has as much time of its own, and Stop, by the control plane's clock. Zero keeps the
// default: one minute for the start, and for Stop 30 seconds or, in virtual time, two minutes.
func WithTimeouts(start, stop time.Duration) Option {
	return func(c *config) {
		c.timeouts.start, c.timeouts.stop = cmp.Or(start, c.timeouts.start), cmp.Or(stop, c.timeouts.stop)
	}
}

// bootFlags are those with which a boot may find what one with the same flags has written: they
// name no file, which could have changed, and nothing that would hear of a write.
var bootFlags = []string{"--authorization-mode=", "--feature-gates=", "--runtime-config=", "--v=", "--vmodule="}

// ordinaryBoot says whether nothing but the time it takes tells how the objects came into the
// store that each boot of the process writes: roles, API services, flow control, namespaces.
func (c *config) ordinaryBoot() bool {
	ordinaryFlags := !slices.ContainsFunc(c.flags, func(flag string) bool {
		return !slices.ContainsFunc(bootFlags, func(name string) bool { return strings.HasPrefix(flag, name) })
	})
	return ordinaryFlags && !c.watchesBoot() && c.store == nil && c.replicas == 1 && !virtualtime.Virtual()
}

// watchesBoot says whether there is anything that would hear of what happens in a boot.
func (c *config) watchesBoot() bool {
	return len(c.faults)+len(c.hooks)+len(c.observers)+len(c.steps)+len(c.flagWebhooks) > 0 || c.fullTrace
}

// bootKind is equal for boots that write the same.
func (c *config) bootKind() string { return strings.Join(c.flags, "\n") }

// holds says whether anything is held from the start.
func (c *config) holds() bool {
	return slices.ContainsFunc(c.faults, func(r fault.Rule) bool { return r.Kind == fault.Hold || r.Kind == fault.Freeze })
}

// holdsSteps says whether steps of a start are held, which no server goes without.
func (c *config) holdsSteps() bool {
	return slices.ContainsFunc(c.faults, func(r fault.Rule) bool {
		kind, _, _ := strings.Cut(r.Point, "/")
		return r.Kind == fault.Hold && slices.Contains([]string{"hook", "signal", "stage"}, kind)
	})
}

// impossible are the actions that can't be done on the store.
func (c *config) impossible() map[fault.ActionKind]string {
	if _, ok := c.store.(storage.LeaderLoser); ok {
		return nil
	}
	return map[fault.ActionKind]string{fault.LoseLeader: "the store has no leader to lose; use cluster.New with WithStore"}
}

func (c *config) backend(name string) storage.Backend {
	if c.store == nil {
		return memory.New(name)
	}
	return c.store
}
