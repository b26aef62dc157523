package envtest

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"snowglobe.test/envtest/chain"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/trace"
	"snowglobe.test/internal/pki"
)

// AdminUser is the name of the user whose configuration Config returns. It is in
// the group system:masters.
const AdminUser = "snowglobe-admin"

const mastersGroup = "system:masters"

// ControlPlane is a running API server with its store. All its methods may be
// called from any goroutine.
type ControlPlane struct {
	name      string
	cfg       *config
	store     storage.Backend
	authority *pki.Authority
	users     *users
	// accountKey signs service-account tokens, unless flags name a key.
	accountKey *ecdsa.PrivateKey
	listener   *listener
	entrance   *entrance
	log        *logBuffer
	recorder   *trace.Recorder
	watchGate  chain.WatchGate
	faults     *fault.Set
	readiness  readiness

	member   *chain.Member
	chain    *chain.Chain
	admin    *rest.Config
	kube     kubeconfigs
	endRun   context.CancelCauseFunc
	runEnded chan struct{}
	runErr   error
	boot     *Snapshot // for Reset, nil if there can be none

	accepting chan struct{} // closed when requests may come in
	crashOnce sync.Once
	crashed   chan struct{}
	crashErr  error

	stopOnce sync.Once
	stopErr  error
}

// serverName is what rules call the API server. It is the same in every run.
const serverName = "apiserver-0"

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
		name:      fmt.Sprintf("cp-%d", sequence.Add(1)),
		cfg:       cfg,
		crashed:   make(chan struct{}),
		accepting: make(chan struct{}),
		runEnded:  make(chan struct{}),
	}
	cp.log = newLogBuffer(cfg.log)
	cp.recorder = trace.NewRecorder(cp.name, 0)
	for _, observer := range cfg.observers {
		cp.recorder.Subscribe(observer)
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
	flags, err := chain.ParseFlags(cp.cfg.flags)
	if err != nil {
		return err
	}
	if cp.listener, err = listen(cp.cfg); err != nil {
		return err
	}
	if err := cp.makeCredentials(); err != nil {
		return err
	}
	if _, err := cp.faults.Add(cp.cfg.faults...); err != nil {
		return err
	}
	if cp.member, err = chain.Join(cp.name, flags, cp.log, cp.crash); err != nil {
		return err
	}
	cp.member.Do(func() { err = cp.startChain(ctx) })
	if err != nil {
		return err
	}
	if err := cp.waitStarted(ctx); err != nil {
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

// startChain runs in the member's goroutine label, as does all it starts.
func (cp *ControlPlane) startChain(ctx context.Context) error {
	store := cp.cfg.backend(cp.name)
	cp.store = store
	if !cp.cfg.sharedStore {
		if err := store.Start(ctx); err != nil {
			return err
		}
	}
	runCtx, end := context.WithCancelCause(context.Background())
	assembled, err := chain.Assemble(ctx, cp.chainConfig(runCtx))
	if err != nil {
		end(err)
		return err
	}
	cp.chain, cp.endRun = assembled, end
	cp.member.Go(func() {
		defer close(cp.runEnded)
		if cp.runErr = cp.chain.Run(runCtx); cp.runErr != nil {
			cp.crash(cp.runErr)
		}
	})
	return nil
}

func (cp *ControlPlane) chainConfig(run context.Context) chain.Config {
	serving, err := cp.authority.Serving("localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "10.0.0.1")
	if err != nil {
		panic(err) // crypto/rand never fails
	}
	return chain.Config{
		Name:           cp.name,
		Flags:          cp.cfg.flags,
		Store:          cp.store,
		Listener:       cp.listener,
		Transport:      loopback{cp.entrance, run.Done()},
		Accept:         cp.accept,
		Drained:        cp.drained,
		Serving:        serving,
		ClientCA:       cp.authority.CertPEM(),
		Tokens:         cp.users,
		AccountKey:     cp.accountKey,
		Faults:         cp.faults,
		Server:         serverName,
		Kill:           cp.crash,
		Hooks:          cp.cfg.hooks,
		UpstreamPauses: cp.cfg.upstreamPauses,
		WatchGate:      &cp.watchGate,
		StopBefore:     cp.cfg.stopBefore,
		Trace:          cp.recorder,
		Crash:          cp.crash,
	}
}

// crash notes the first failure that would have ended a kube-apiserver process,
// and ends the chain.
func (cp *ControlPlane) crash(err error) {
	cp.crashOnce.Do(func() {
		cp.crashErr = err
		close(cp.crashed)
		if cp.endRun != nil {
			cp.endRun(err)
		}
	})
}

// Name returns the control plane's name, unique in the process.
func (cp *ControlPlane) Name() string { return cp.name }

// Config returns a configuration of a cluster admin whose requests call the
// handler chain inside the process. Upgrade requests go through TLS on an
// in-memory connection. The caller may change the copy.
func (cp *ControlPlane) Config() *rest.Config { return rest.CopyConfig(cp.admin) }

// Trace returns the record of what has happened so far and what happens next.
func (cp *ControlPlane) Trace() *trace.Recorder { return cp.recorder }

// Log returns the API server's log, or the end of it when it is long.
func (cp *ControlPlane) Log() string { return cp.log.String() }

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

// Hooks returns the names of the post-start hooks, sorted.
func (cp *ControlPlane) Hooks() []string { return cp.chain.Hooks() }

// HeldHooks returns the names of the post-start hooks that are held, sorted.
func (cp *ControlPlane) HeldHooks() []string { return cp.chain.HeldHooks() }

// ReleaseHook lets a post-start hook run that HoldHook holds. Releasing one that
// is not held is an error that names those that are.
func (cp *ControlPlane) ReleaseHook(name string) error { return cp.chain.ReleaseHook(name) }

// FireSignal fires one of upstream's lifecycle signals before its time, as a bug
// would: MuxAndDiscoveryComplete, HasBeenReady, ... An unknown one is an error
// that names them all.
func (cp *ControlPlane) FireSignal(name string) error { return cp.chain.FireSignal(name) }

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
	return cp.watchGate.Hold(resource)
}

// ReleaseWatchCache lets the watch cache of a resource catch up.
func (cp *ControlPlane) ReleaseWatchCache(resource schema.GroupResource) error {
	return cp.watchGate.Release(resource)
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
	ctx, cancel := context.WithTimeoutCause(ctx, cp.cfg.timeouts.stop,
		fmt.Errorf("not within %s", cp.cfg.timeouts.stop))
	defer cancel()
	var errs []error
	if cp.endRun != nil {
		cp.endRun(errStopped)
		select {
		case <-cp.runEnded:
		case <-ctx.Done():
			errs = append(errs, fmt.Errorf("the API server has not terminated: %w", context.Cause(ctx)))
		}
	}
	cp.faults.Close()
	errs = append(errs, cp.kube.remove())
	if cp.entrance != nil {
		errs = append(errs, cp.entrance.end(ctx))
	}
	if cp.listener != nil {
		cp.listener.end()
	}
	if cp.store != nil && !cp.cfg.sharedStore {
		errs = append(errs, cp.store.Stop(ctx))
	}
	if cp.member != nil {
		if err := cp.member.Join(ctx); err != nil {
			errs = append(errs, err)
		}
		cp.member.Leave()
	}
	return errors.Join(errs...)
}
