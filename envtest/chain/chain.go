// Package chain owns the delegation chain of a kube-apiserver: aggregator,
// kube-apiserver, apiextensions and the not-found handler, assembled out of
// upstream's exported pieces, one file a stage (stages.go). It never opens a port
// or a file by itself and re-implements nothing of the API server.
//
// What upstream does not export is reached for in one file each: its lifecycle
// signals, hooks, controllers and leases in package upstream; the bootstrap roles
// in package bootstrap; the order of the groups in discovery in aggregator.go; the
// release from the path of a linked source file in package linked; the informers of a
// factory in package settle; the name of the called webhook in package inject; and
// the labels and stacks of goroutines in package process.
package chain

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	_ "time/tzdata" // as in kube-apiserver: for the timeZone of a CronJob

	"gopkg.in/natefinch/lumberjack.v2"
	apiextensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	aggregatorapiserver "k8s.io/kube-aggregator/pkg/apiserver"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/controlplane"

	"snowglobe.test/envtest/chain/egress"
	"snowglobe.test/envtest/chain/inject"
	"snowglobe.test/envtest/chain/restore"
	"snowglobe.test/envtest/chain/upstream"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/fault/edge"
	"snowglobe.test/envtest/process"
	"snowglobe.test/envtest/serve"
	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/storage/intercept"
	"snowglobe.test/envtest/trace"
)

// Config is what a chain is made of. Fields without a stated default are required.
type Config struct {
	// ControlPlane and Server name the server: ControlPlane is unique in the process
	// ("cp-1"), and Server is what rules call it ("apiserver-0").
	ControlPlane, Server string
	// OwnIdentity derives the server's identity from Server instead of the host's
	// name, so that several servers of a process differ.
	OwnIdentity bool
	// Flags are its kube-apiserver flags, used up: a restart parses them again.
	Flags *Flags
	// Store is a started store. The chain does not stop it.
	Store storage.Backend
	// Connection is a new one to the store: the chain attaches a client and closes it.
	Connection *intercept.Connection
	// Restorer is shared by all servers of the store.
	Restorer *restore.Restorer
	// CacheWindows is reststorage.Config.EventsHistoryWindows; it may be nil.
	CacheWindows map[schema.GroupResource]time.Duration
	// Endpoint is where the chain is reached: it opens when requests may come in,
	// drains when the chain begins to stop, and closes when all requests have been
	// answered. The chain does not stop it.
	Endpoint *serve.Endpoint
	// Dial reaches what is outside: webhooks, aggregated servers, nodes, issuers of
	// tokens. Nil is by the network of the machine.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// DialInProcess connects to what is in the memory of the process, before Dial and the
	// proxies of flags are asked; it is not ok if the address is not there. Nil knows
	// no such place.
	DialInProcess func(ctx context.Context, address string) (conn net.Conn, ok bool, err error)
	// Serving is the certificate of the TLS listener.
	Serving KeyPair
	// ClientCA verifies client certificates, PEM encoded.
	ClientCA []byte
	// FrontProxy is the aggregator's, unless flags say what it is.
	FrontProxy *FrontProxy
	// AccountKey signs and verifies service-account tokens, unless flags name keys.
	AccountKey *ecdsa.PrivateKey
	// Tokens authenticates bearer tokens before upstream does; nil means none.
	Tokens authenticator.Token
	// Faults are the rules about this server; nil leaves the injectors out.
	Faults *fault.Set
	// SettledWrites makes the answer to a write wait until the server's own watch caches and
	// informers have it.
	SettledWrites bool
	// UpstreamPauses keeps the second that two of upstream's hooks wait before they try.
	UpstreamPauses bool
	// Bootstrapped says that the store has the objects of an earlier boot with the same flags, so
	// that those two hooks would find nothing to do.
	Bootstrapped bool
	// Virtual is whether the server is in virtual time, where files are looked at now and then:
	// it can't wait until the operating system tells of a change.
	Virtual bool
	// OwnDocuments builds the OpenAPI v3 documents anew, where those of an earlier server of
	// the process could be shared.
	OwnDocuments bool
	// PostStartHooks are added to upstream's, by their names; nil adds none.
	PostStartHooks map[string]func(ctx context.Context, loopback *rest.Config) error
	// Trace receives what happens.
	Trace *trace.Recorder
	// Crash is told of a failure that would have ended a kube-apiserver process:
	// a failed post-start hook, a fatal log line, a panic. It must not block.
	Crash func(error)
}

// validate names every required field that is missing.
func (c *Config) validate() error {
	var missing []string
	for _, field := range []struct {
		name  string
		given bool
	}{
		{"ControlPlane", c.ControlPlane != ""},
		{"Server", c.Server != ""},
		{"Flags", c.Flags != nil},
		{"Store", c.Store != nil},
		{"Connection", c.Connection != nil},
		{"Restorer", c.Restorer != nil},
		{"Endpoint", c.Endpoint != nil},
		{"Serving", len(c.Serving.Cert) > 0 && len(c.Serving.Key) > 0},
		{"ClientCA", len(c.ClientCA) > 0},
		{"FrontProxy", c.FrontProxy != nil},
		{"AccountKey", c.AccountKey != nil},
		{"Trace", c.Trace != nil},
		{"Crash", c.Crash != nil},
	} {
		if !field.given {
			missing = append(missing, field.name)
		}
	}
	if len(missing) > 0 {
		return errors.New("the configuration lacks " + strings.Join(missing, ", "))
	}
	return nil
}

// Chain is an assembled chain.
type Chain struct {
	cfg Config
	// injector asks the rules about the boot. It ends when the server stops, so that
	// the boot can; ending asks about what comes after that.
	injector, ending *edge.Injector
	// life ends with the chain, run or not.
	life    context.Context
	endLife context.CancelCauseFunc
	// stopping ends when Run's context has.
	stopping context.Context
	stop     context.CancelFunc

	options      options.CompletedOptions
	informerName *cache.InformerName
	storeDialer  *egress.StoreDialer
	egress       *inject.Egress

	generic         *genericStage
	configs         serverConfigs
	servers         servers
	prepared        interface{ Run(context.Context) error }
	state           state
	requests        *inject.Requests
	documents       upstream.LazyOpenAPI
	polling         *upstream.OpenAPIPolling
	renewals        *upstream.Renewals
	peerLease       *upstream.PeerLease // nil if no server looks for another
	quota           *upstream.QuotaDrain
	caches          upstream.TimedCaches
	endpoints       *upstream.Endpoints
	auditLogs       []*lumberjack.Logger
	autoregistering *upstream.Autoregistration
	untraced        http.Handler // the filters and all behind them, below the trace
	hooks           *hookSet
	signals         []*signal      // upstream's own, below the injector
	firing          sync.WaitGroup // those of the boot that are about to fire
	firingAtEnd     sync.WaitGroup // those of the termination that are
	// readySignal is closed when HasBeenReady is over and done with.
	readySignal <-chan struct{}

	following atomic.Bool   // lifecycle signals are followed
	dead      atomic.Bool   // Kill has begun
	killed    chan struct{} // closed when Kill has ended
}

// servers are the servers of the chain, from its end to its head.
type servers struct {
	notFound      genericapiserver.DelegationTarget
	apiextensions *apiextensionsapiserver.CustomResourceDefinitions
	kubeapi       *controlplane.Instance
	aggregator    *aggregatorapiserver.APIAggregator
}

// Assemble builds the chain stage by stage; nothing it starts outlives an error.
// The context bounds the assembly and carries nothing else.
func Assemble(ctx context.Context, cfg Config) (*Chain, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("start chain: %w", err)
	}
	c := &Chain{
		cfg: cfg, polling: upstream.NewOpenAPIPolling(), renewals: upstream.NewRenewals(),
		quota:           upstream.NewQuotaDrain(),
		autoregistering: upstream.NewAutoregistration(), killed: make(chan struct{}),
	}
	c.life, c.endLife = context.WithCancelCause(context.Background())
	c.stopping, c.stop = context.WithCancel(c.life)
	effects := edge.Effects{Compact: c.compactStore, LoseLeader: c.loseLeader(), Crash: c.crash}
	if cfg.Faults != nil {
		c.injector = edge.NewInjector(cfg.Faults, cfg.Server, effects)
		c.ending = edge.NewInjector(cfg.Faults, cfg.Server, effects)
	}
	c.requests, c.egress = inject.NewRequests(cfg.Trace, c.injector), inject.NewEgress(c.injector)
	clients, assembled := process.OwnStoreClients(), false
	defer func() {
		if !assembled { // also when a fatal log line or a panic ends the goroutine
			c.release()
			clients.Close()
		}
	}()
	for _, s := range assembly {
		do := func() error {
			defer c.monitorStore()
			return s.do(c, ctx)
		}
		if err := c.enter(ctx, s.name, do); err != nil {
			return nil, err
		}
	}
	assembled = true
	clients.Built()
	return c, nil
}
