package envtest

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"snowglobe.test/envtest/chain"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/trace"
	"snowglobe.test/envtest/virtualtime"
	"snowglobe.test/internal/pki"
)

// AdminUser is the name of the user whose configuration Config returns. It is in
// the group system:masters.
const AdminUser = "snowglobe-admin"

const mastersGroup = "system:masters"

// ControlPlane is a running API server with its store, or several on one. Of
// several, methods that are about one are about the first. All its methods may
// be called from any goroutine.
type ControlPlane struct {
	name      string
	cfg       *config
	store     storage.Backend // nil until start
	authority *pki.Authority
	users     *users
	// accountKey signs service-account tokens, unless flags name a key.
	accountKey *ecdsa.PrivateKey
	recorder   *trace.Recorder
	faults     *fault.Set
	servers    []*Server
	log        io.Writer              // of all servers together, nil for none
	scheduler  *virtualtime.Scheduler // nil if operations go as they come
	changes    *storeWatch            // nil unless the trace is full
	link       *Link                  // that Config and AddUser go by
	writes     *chain.Writes

	member *chain.Member // whose goroutines are the store's
	admin  *rest.Config
	kube   kubeconfigs
	boot   *Snapshot // for Reset, nil if there can be none

	crashOnce sync.Once
	crashed   chan struct{}
	crashErr  error

	stopping    context.Context // ends when Stop begins
	endStopping context.CancelFunc
	stopOnce    sync.Once
	stopErr     error
}

// sequence numbers the control planes of a process, for their names.
var sequence atomic.Int64

// Launch starts a control plane without a test; the caller stops it. The context
// bounds the start only.
func Launch(ctx context.Context, opts ...Option) (*ControlPlane, error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, fmt.Errorf("start control plane: %w", err)
	}
	return newControlPlane(cfg).launch(ctx)
}

func newControlPlane(cfg *config) *ControlPlane {
	cp := &ControlPlane{
		name:    fmt.Sprintf("cp-%d", sequence.Add(1)),
		cfg:     cfg,
		writes:  chain.NewWrites(),
		crashed: make(chan struct{}),
	}
	cp.recorder = trace.NewRecorder(cp.name, 0)
	for _, observer := range cfg.observers {
		cp.recorder.Subscribe(observer)
	}
	if cfg.log != nil {
		cp.log = &sharedWriter{to: cfg.log}
	}
	cp.stopping, cp.endStopping = context.WithCancel(context.Background())
	cp.link = cp.NewLink()
	for index := range cfg.replicas {
		cp.servers = append(cp.servers, newServer(cp, index))
	}
	cp.faults = fault.New(fault.Config{Seed: cfg.seed, Trace: cp.recorder})
	return cp
}

func (cp *ControlPlane) launch(ctx context.Context) (*ControlPlane, error) {
	if err := cp.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start control plane: %w", err), cp.release(context.WithoutCancel(ctx)))
	}
	return cp, nil
}

// start brings the control plane up; what it has taken when it fails, release
// gives back.
func (cp *ControlPlane) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cp.cfg.timeouts.start)
	defer cancel()
	crds, err := loadCRDs(cp.cfg)
	if err != nil {
		return err
	}
	flags, err := chain.ParseFlags(cp.cfg.serverFlags(0))
	if err != nil {
		return err
	}
	for _, server := range cp.servers {
		if err := server.listen(); err != nil {
			return err
		}
	}
	if err := cp.makeCredentials(); err != nil {
		return err
	}
	if err := cp.faults.Know(crdNames(crds)); err != nil {
		return err
	}
	if err := cp.faults.Know(fault.Names{"stage": chain.Stages()}); err != nil {
		return err
	}
	if _, err := cp.faults.Add(cp.cfg.faults...); err != nil {
		return err
	}
	if err := cp.startStore(ctx, flags); err != nil {
		return err
	}
	if err := cp.watchStore(); err != nil {
		return err
	}
	if cp.cfg.order != nil {
		cp.Schedule(*cp.cfg.order)
	}
	for _, server := range cp.servers {
		if err := server.boot(ctx); err != nil {
			return err
		}
	}
	if err := cp.first().chain().CheckCacheWindows(); err != nil {
		return err
	}
	if err := cp.installCRDs(ctx, crds); err != nil {
		return err
	}
	if err := cp.keepBootState(ctx); err != nil {
		return fmt.Errorf("keep the state right after boot: %w", err)
	}
	return cp.writeKubeconfig()
}

// startStore starts the store, in a goroutine label of its own: it outlives
// every server.
func (cp *ControlPlane) startStore(ctx context.Context, flags *chain.Flags) error {
	member, err := chain.Join(cp.name, flags, cp.first().log, cp.first().fail)
	if err != nil {
		return err
	}
	cp.member, cp.store = member, cp.cfg.backend(cp.name)
	if cp.cfg.sharedStore {
		return nil
	}
	member.Do(func() { err = cp.store.Start(ctx) })
	return err
}

// crash notes the first failure of a server that would have ended a
// kube-apiserver process.
func (cp *ControlPlane) crash(err error) {
	cp.crashOnce.Do(func() {
		cp.crashErr = err
		close(cp.crashed)
	})
}

// first is the server that stands for all where one is meant.
func (cp *ControlPlane) first() *Server { return cp.servers[0] }

// Name returns the control plane's name, unique in the process.
func (cp *ControlPlane) Name() string { return cp.name }

// Config returns a configuration of a cluster admin whose requests call the
// handler chain inside the process. Upgrade requests go through TLS on an
// in-memory connection. Of several servers they go to the first that accepts
// requests, until that one is gone. The caller may change the copy.
func (cp *ControlPlane) Config() *rest.Config { return rest.CopyConfig(cp.admin) }

// Trace returns the record of what has happened so far and what happens next.
func (cp *ControlPlane) Trace() *trace.Recorder { return cp.recorder }

// Log returns the API server's log, or the end of it when it is long.
func (cp *ControlPlane) Log() string { return cp.first().Log() }

// Store returns the store the control plane runs on.
func (cp *ControlPlane) Store() storage.Backend { return cp.store }

// Crashed is closed when the API server has failed in a way that would have
// ended a kube-apiserver process; Err says how.
func (cp *ControlPlane) Crashed() <-chan struct{} { return cp.crashed }

// Err returns why the API server crashed, nil if it did not.
func (cp *ControlPlane) Err() error {
	select {
	case <-cp.crashed:
		return cp.crashErr
	default:
		return nil
	}
}

// Ready asks /readyz once, records the checks that turned, and says whether the
// answer was 200.
func (cp *ControlPlane) Ready(ctx context.Context) bool { return cp.first().Ready(ctx) }

// WaitReady waits until /readyz answers 200. When the context ends first, the
// error names the checks that are red and the hooks that are held.
func (cp *ControlPlane) WaitReady(ctx context.Context) error { return cp.first().WaitReady(ctx) }

// RedChecks returns the readiness checks that were red when they were last
// asked, in upstream's order.
func (cp *ControlPlane) RedChecks() []string { return cp.first().RedChecks() }

// Hooks returns the names of the post-start hooks, sorted.
func (cp *ControlPlane) Hooks() []string { return cp.first().Hooks() }

// HeldHooks returns the names of the post-start hooks that are held, sorted.
func (cp *ControlPlane) HeldHooks() []string { return cp.first().HeldHooks() }

// ReleaseHook lets a post-start hook run that HoldHook holds. Releasing one that
// is not held is an error that names those that are.
func (cp *ControlPlane) ReleaseHook(name string) error { return cp.first().ReleaseHook(name) }

// FireSignal fires one of upstream's lifecycle signals before its time, as a bug
// would: MuxAndDiscoveryComplete, HasBeenReady, ... An unknown one is an error
// that names them all.
func (cp *ControlPlane) FireSignal(name string) error { return cp.first().FireSignal(name) }

// Release returns the release of the linked kube-apiserver, like "v1.37.1".
func Release() string { return chain.Release() }

// Faults holds the rules that bend what the control plane does. They may be
// added, listed and removed while it runs.
func (cp *ControlPlane) Faults() *fault.Set { return cp.faults }

// Gate returns where operations wait that match, such as
// "store/put resource=configmaps": from now on they are held, until the gate is
// opened or releases them.
func (cp *ControlPlane) Gate(match string) (*fault.Gate, error) { return cp.faults.Gate(match) }

// HoldWatchCache keeps the watch cache of a resource behind the store: events
// and progress notifications of the store are held until ReleaseWatchCache.
func (cp *ControlPlane) HoldWatchCache(resource schema.GroupResource) error {
	return cp.first().HoldWatchCache(resource)
}

// ReleaseWatchCache lets the watch cache of a resource catch up.
func (cp *ControlPlane) ReleaseWatchCache(resource schema.GroupResource) error {
	return cp.first().ReleaseWatchCache(resource)
}

// Stop ends the API server gracefully and its store with it, and joins every
// goroutine they started. The error names what did not end in time. Stop may be
// called twice.
func (cp *ControlPlane) Stop(ctx context.Context) error {
	cp.stopOnce.Do(func() {
		if err := cp.release(ctx); err != nil {
			cp.stopErr = fmt.Errorf("stop control plane: %w", err)
		}
	})
	return cp.stopErr
}

var errStopped = errors.New("the control plane was stopped")

// release gives back what start took, in reverse.
func (cp *ControlPlane) release(ctx context.Context) error {
	ctx, cancel := cp.cfg.timeouts.boundStop(ctx)
	defer cancel()
	cp.Unschedule()
	var errs []error
	cp.endStopping()
	for _, server := range slices.Backward(cp.servers) {
		errs = append(errs, server.stop(ctx))
	}
	cp.faults.Close()
	errs = append(errs, cp.kube.remove())
	cp.changes.stop()
	if cp.store != nil && !cp.cfg.sharedStore {
		errs = append(errs, cp.store.Stop(ctx))
	}
	if cp.member != nil {
		errs = append(errs, cp.member.Join(ctx))
		cp.member.Leave()
	}
	return errors.Join(errs...)
}
