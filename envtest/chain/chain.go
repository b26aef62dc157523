// Package chain owns the delegation chain of a kube-apiserver: aggregator,
// kube-apiserver, apiextensions and the not-found handler, assembled stage by
// stage, one file a stage in upstream's order, out of upstream's exported
// pieces. It never opens a port or a file by itself and re-implements nothing
// of the API server: every reach into what upstream does not export is in one
// file each (hooks.go, signals.go, priorities.go, rbac.go).
package chain

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/tools/cache"
	aggregatorapiserver "k8s.io/kube-aggregator/pkg/apiserver"

	"snowglobe.test/envtest/chain/inject"
	"snowglobe.test/envtest/chain/restore"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/serve"
	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/trace"
	"snowglobe.test/internal/pki"
)

// Config is what one chain is made of. Every field without a
// stated default is required.
type Config struct {
	// Name tells chains side by side apart; it becomes part of the trace.
	Name string
	// Flags are those of kube-apiserver, parsed for this chain alone.
	Flags *ParsedFlags
	// Store is a started store. The chain does not stop it.
	Store storage.Backend
	// Endpoint is where the chain can be reached: it is opened when requests may
	// come in, drained when the chain begins to stop, and closed when all requests
	// have been answered. The chain does not stop it.
	Endpoint *serve.Endpoint
	// Serving is the certificate of the TLS listener.
	Serving pki.Pair
	// ClientCA verifies client certificates, PEM encoded.
	ClientCA []byte
	// Tokens authenticates bearer tokens before upstream's authenticators do.
	// Nil means none.
	Tokens authenticator.Token
	// AccountKey signs and verifies service-account tokens, unless flags name
	// keys.
	AccountKey *ecdsa.PrivateKey
	// Faults bends what this server does; nil means nothing is bent, and the
	// edges are left out. To its rules the server is called Server.
	Faults *fault.Set
	Server string
	// Host stands for the name of the host in the server's identity, so that
	// servers of one process differ. Empty means the host's own name.
	Host string
	// Link is the way to the store, which can be cut. Nil means it never is.
	Link *storage.Link
	// Restorer is the one of all servers of the store. Required.
	Restorer *restore.Restorer
	// Hooks says what to do to post-start hooks; it needs Faults.
	Hooks []HookFault
	// CacheWindows is how long the watch caches of some resources keep events at
	// least; reststorage.MinEventsHistoryWindow is what all do.
	CacheWindows map[schema.GroupResource]time.Duration
	// UpstreamPauses keeps the second that two of upstream's hooks wait before
	// their first try; by default they try at once.
	UpstreamPauses bool
	// StopBefore names a stage that is not entered: Assemble (or Run) then
	// returns ErrStopped. Empty means none.
	StopBefore string
	// Trace receives what happens. Required.
	Trace *trace.Recorder
	// Crash is told of a failure that would have ended a kube-apiserver process:
	// a failed post-start hook, a fatal log line, a panic. Required; it must not
	// block.
	Crash func(error)
}

// ErrStopped is returned when the stage named by Config.StopBefore is reached.
var ErrStopped = errors.New("stopped before stage")

// errCut is how an assembly ends that does not return.
var errCut = errors.New("the goroutine has ended")

// Stages lists the stages in the order in which they are entered.
func Stages() []string {
	names := make([]string, 0, len(assembly)+1)
	for _, s := range assembly {
		names = append(names, s.name)
	}
	return append(names, stageRun)
}

const stageRun = "run"

// stage is one step of the assembly.
type stage struct {
	name string
	do   func(*Chain, context.Context) error
}

// assembly is the order of upstream's own start: options to configuration,
// configuration to servers from the end of the chain to its head, then
// PrepareRun. The run stage follows in Run.
var assembly = []stage{
	{"options", (*Chain).completeOptions},
	{"egress", (*Chain).buildEgress},
	{"generic", (*Chain).buildGeneric},
	{"etcd-preflight", (*Chain).preflight},
	{"kube-apiserver-config", (*Chain).buildKubeAPIConfig},
	{"apiextensions-config", (*Chain).buildAPIExtensionsConfig},
	{"aggregator-config", (*Chain).buildAggregatorConfig},
	{"not-found", (*Chain).buildNotFound},
	{"apiextensions", (*Chain).buildAPIExtensions},
	{"kube-apiserver", (*Chain).buildKubeAPI},
	{"aggregator", (*Chain).buildAggregator},
	{"prepare", (*Chain).prepare},
	{"hooks", (*Chain).wrapHooks},
}

// Chain is an assembled chain.
type Chain struct {
	cfg Config
	// edge is where everything is asked about that can be bent. It ends when the
	// server stops, so that its boot can; ending is for what comes after that.
	edge, ending *fault.Injector

	options      *completedOptions
	informerName *cache.InformerName
	storeDialer  *storeDialer
	egress       *inject.Egress
	neverStop    chan struct{} // closed when the chain ends, run or not

	generic          *genericStage
	configs          serverConfigs
	servers          servers
	prepared         interface{ Run(context.Context) error }
	state            state
	requests         *inject.Requests
	schemas          *schemaPace
	renewals         renewals
	peerLease        *peerLease // nil if no server looks for another
	quota            *quotaDrain
	endpoints        *endpoints
	autoregistration *autoregistration
	unseen           http.Handler // the filters and all behind them, below the trace
	hooks            *hookSet
	signals          []signal       // upstream's, which nobody bends
	firing           sync.WaitGroup // those that are about to fire
	// readySignal is closed when HasBeenReady is over and done with.
	readySignal <-chan struct{}

	stopping atomic.Bool   // Run's context has ended
	dead     atomic.Bool   // Kill has begun
	killed   chan struct{} // closed when Kill has ended
}

// servers are the servers of the chain, from its end to its head.
type servers struct {
	notFound      genericapiserver.DelegationTarget
	apiextensions *apiExtensionsServer
	kubeapi       *kubeAPIServer
	aggregator    *aggregatorapiserver.APIAggregator
}

func (c *Config) validate() error {
	switch {
	case c.Flags == nil, c.Store == nil, c.Endpoint == nil, c.AccountKey == nil, c.Trace == nil, c.Crash == nil, c.Restorer == nil:
		return errors.New("configuration lacks flags, a store, an endpoint, a key, a trace or a handler of its crash")
	case len(c.Hooks) > 0 && c.Faults == nil:
		return errors.New("configuration bends hooks but has no set of faults")
	case c.StopBefore != "" && !slices.Contains(Stages(), c.StopBefore):
		return fmt.Errorf("cannot stop before unknown stage %q; the stages are %s", c.StopBefore, strings.Join(Stages(), ", "))
	}
	return nil
}

// Assemble builds the chain, stage after stage, and starts nothing that
// outlives an error. The context bounds the assembly and carries nothing else.
func Assemble(ctx context.Context, cfg Config) (*Chain, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("start chain: %w", err)
	}
	c := &Chain{
		cfg: cfg, schemas: newSchemaPace(), renewals: newRenewals(), quota: newQuotaDrain(), autoregistration: newAutoregistration(),
		neverStop: make(chan struct{}), killed: make(chan struct{}),
	}
	effects := fault.Effects{Compact: c.compactStore, LoseLeader: c.loseLeader(), Crash: c.crash}
	if cfg.Faults != nil {
		c.edge, c.ending = fault.NewInjector(cfg.Faults, cfg.Server, effects), fault.NewInjector(cfg.Faults, cfg.Server, effects)
	}
	c.requests, c.egress = inject.NewRequests(cfg.Trace, c.edge), inject.NewEgress(c.edge)
	at, ended := 0, false
	defer func() {
		if !ended { // nor will it: a fatal log line or a panic ends the goroutine
			c.giveUp(ctx, errCut, at)
		}
	}()
	for i, s := range assembly {
		at = i
		if err := c.enter(ctx, s.name, func() error { return s.do(c, ctx) }); err != nil {
			ended = true
			c.giveUp(ctx, err, i)
			return nil, err
		}
	}
	ended = true
	return c, nil
}

// enter runs one stage, unless the chain is to be stopped before it.
func (c *Chain) enter(ctx context.Context, name string, do func() error) error {
	if c.cfg.StopBefore == name {
		c.cfg.Trace.Record(trace.Stage{Name: name, Phase: trace.StoppedBefore})
		return fmt.Errorf("start chain: %w %s", ErrStopped, name)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("start chain: stage %s: %w", name, context.Cause(ctx))
	}
	c.cfg.Trace.Record(trace.Stage{Name: name, Phase: trace.Start})
	err := do()
	c.cfg.Trace.Record(trace.Stage{Name: name, Phase: trace.End, Err: err})
	if err != nil {
		return fmt.Errorf("start chain: stage %s: %w", name, err)
	}
	return nil
}

// LetGo ends everything that rules do to the chain: what they hold goes on, and
// the lifecycle signals fire that they have taken away. It is for a server that
// must come to its end.
func (c *Chain) LetGo() {
	c.edge.End()
	c.ending.End()
	for _, s := range c.signals {
		s.Signal()
	}
}

// end releases what upstream's Run does not, or would have. Goroutines of the
// configuration wait for signals that upstream leaves unset when it fails early.
func (c *Chain) end() {
	c.LetGo()
	c.firing.Wait()
	if c.hooks != nil {
		c.hooks.remove()
	}
	close(c.neverStop)
	if c.state.storage != nil {
		c.state.storage.Close()
	}
	c.storeDialer.end()
	c.egress.Close()
	if c.informerName != nil {
		c.informerName.Release()
	}
}
