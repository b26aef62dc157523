package envtest

import (
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"

	"snowglobe.test/envtest/chain"
	"snowglobe.test/envtest/chain/bootstrap"
	"snowglobe.test/envtest/chain/restore"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/process"
	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/trace"
	"snowglobe.test/envtest/virtualtime"
	"snowglobe.test/envtest/webhook"
	"snowglobe.test/internal/memfile"
	"snowglobe.test/internal/pki"
)

// ControlPlane is one or more running API servers on one store; Server has the methods
// for each of them. All its methods may be called from any goroutine.
type ControlPlane struct {
	name       string
	kind       string // for the pool, empty if it can't be there
	cfg        *config
	store      storage.Backend // nil until start
	authority  *pki.Authority
	frontProxy *chain.FrontProxy
	users      *users
	// accountKey signs service-account tokens, unless flags name a key.
	accountKey   *ecdsa.PrivateKey
	recorder     *trace.Recorder
	faults       *fault.Set
	latency      *virtualtime.Latency // nil where work takes time, or is not to
	servers      []*Server
	log          io.Writer // of all servers together, nil for none
	scheduling   *scheduling
	changes      *storeWatch     // nil unless the trace is full
	client       *Client         // of Config
	webhooks     *webhook.Set    // nil until start
	webhookFiles []*memfile.File // of WithWebhookFlag
	clients      atomic.Int64
	// componentNames are those of the components that run.
	componentNames takenNames
	restorer       *restore.Restorer // nil before the store is started

	member     *process.Member // whose goroutines are the store's
	kubeconfig string          // the file that was written, empty for none
	boot       *Snapshot       // for Reset, nil if there can be none
	// bootstrapped says that the store had the objects of an earlier boot when the first server began.
	bootstrapped bool

	crashOnce sync.Once
	crashed   chan struct{}
	crashErr  error
	serving   atomic.Pointer[[]*x509.Certificate] // of --tls-cert-file

	stopping    context.Context // ends when Stop begins
	endStopping context.CancelFunc
	stopOnce    sync.Once
	stopErr     error
	number      int64 // in the process, from 1
	virtual     bool  // it is in virtual time
	undecided   bool  // the seed does not decide everything
	begun       bool  // operations take turns: another run may go otherwise from here on
}

// sequence numbers the control planes of a process, for their names.
var sequence atomic.Int64

// Launch starts a control plane without a test; the caller stops it. The context
// bounds only the start.
func Launch(ctx context.Context, opts ...Option) (*ControlPlane, error) {
	cfg, err := readOptions(opts)
	if err != nil {
		return nil, err
	}
	return newControlPlane(cfg).launch(ctx)
}

// readOptions returns the configuration of a control plane that is to start now.
func readOptions(opts []Option) (*config, error) {
	cfg, err := newConfig(opts)
	if err == nil && cfg.clock != nil {
		err = virtualtime.SetClock(*cfg.clock)
	}
	if err != nil {
		return nil, fmt.Errorf("start control plane: %w", err)
	}
	return cfg, nil
}

func newControlPlane(cfg *config) *ControlPlane {
	number := sequence.Add(1)
	cp := &ControlPlane{
		name:       fmt.Sprintf("cp-%d", number),
		number:     number,
		virtual:    virtualtime.Virtual(),
		cfg:        cfg,
		scheduling: newScheduling(),
		crashed:    make(chan struct{}),
	}
	cp.recorder = trace.NewRecorder(cp.name, 0)
	for _, observer := range cfg.observers {
		cp.recorder.Subscribe(observer)
	}
	cp.applySeed()
	cp.watchForLivelock()
	if cfg.log != nil {
		cp.log = &sharedWriter{to: cfg.log}
	}
	cp.stopping, cp.endStopping = context.WithCancel(context.Background())
	cp.client = newClient(cp, clientName(0), nil)
	for index := range cfg.replicas {
		cp.servers = append(cp.servers, newServer(cp, index))
	}
	faults := fault.Config{
		Seed: cfg.seed, Names: fault.Names{"server": cp.serverNames()}, Impossible: cfg.impossible(),
		Trace: cp.recorder,
	}
	if cp.virtual && !cfg.noLatency {
		cp.latency = virtualtime.NewLatency(cfg.seed)
		faults.Latency = cp.latency
	}
	cp.faults = fault.New(faults)
	return cp
}

func (cp *ControlPlane) launch(ctx context.Context) (*ControlPlane, error) {
	cp.tellSeed()
	if err := cp.start(ctx); err != nil {
		if crash := cp.Err(); crash != nil {
			err = crash // whatever else failed did so because of it
		}
		err = cp.withFired()(fmt.Errorf("start control plane: %w", err))
		releasing, forget := patience(ctx)
		defer forget()
		return nil, cp.withUndecided(errors.Join(err, cp.release(releasing)))
	}
	return cp, nil
}

// patience returns the context of what must be done after a failure: a deadline that has passed,
// or is near, is no reason to leave it, but who cancels from now on does not want to wait.
func patience(ctx context.Context) (patient context.Context, forget func()) {
	patient, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	if ctx.Err() != nil {
		return patient, func() { cancel(nil) }
	}
	stay := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			cancel(context.Cause(ctx))
		}
	})
	return patient, func() {
		stay()
		cancel(nil)
	}
}

// start brings the control plane up. If it fails, release gives back what it took.
func (cp *ControlPlane) start(ctx context.Context) error {
	crds, places, err := loadCRDs(cp.cfg)
	if err != nil {
		return err
	}
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	if !cp.virtual {
		defer process.Boot()()
	}
	within := cp.cfg.timeouts.within
	all := func(ctx context.Context) error { return cp.startAll(ctx, giveUp, resourcesOf(crds)) }
	if err := within(ctx, "a start", all); err != nil {
		return err
	}
	install := func(ctx context.Context) error { return cp.installCRDs(ctx, crds, places) }
	if err := within(ctx, "the installation of CRDs", install); err != nil {
		return err
	}
	if err := within(ctx, "a start", cp.keepBootState); err != nil {
		return fmt.Errorf("keep the state right after boot: %w", err)
	}
	return cp.writeKubeconfig()
}

// startAll starts the store and every server. Rules may name the resources of definitions that are
// to be installed.
func (cp *ControlPlane) startAll(ctx context.Context, giveUp context.CancelCauseFunc, resources []string) error {
	if err := cp.makeAuthority(ctx); err != nil {
		return err
	}
	cp.webhooks = webhook.NewSet(cp.authority.Certify, cp.serviceAt)
	if err := cp.serveFlagWebhooks(); err != nil {
		return err
	}
	for _, server := range cp.servers {
		if err := server.prepare(); err != nil {
			return err
		}
	}
	cp.users.renew()
	if err := cp.faults.AddNames(fault.Names{"stage": chain.Stages(), "resource": resources}); err != nil {
		return err
	}
	if _, err := cp.faults.Add(cp.cfg.faults...); err != nil {
		return err
	}
	cp.begun = true
	if err := cp.startStore(ctx); err != nil {
		return err
	}
	cp.followStore(giveUp)
	if err := cp.shareBoot(func(store clientv3.KV) (err error) {
		cp.bootstrapped, err = bootstrap.WriteObjects(ctx, cp.cfg.bootKind(), store, cp.restorer.Booted)
		return err
	}); err != nil {
		return err
	}
	if err := cp.watchStore(); err != nil {
		return err
	}
	if err := cp.startOrder(ctx); err != nil {
		return err
	}
	for _, server := range cp.servers {
		if err := server.boot(ctx); err != nil {
			return err
		}
	}
	cp.bootstrapped = false // a restart repairs what somebody has changed since
	if err := cp.shareBoot(func(store clientv3.KV) error {
		return bootstrap.KeepObjects(ctx, cp.cfg.bootKind(), store)
	}); err != nil {
		return err
	}
	return cp.first().chain().Storage().CheckEventsHistoryWindows()
}

// shareBoot reads or writes what boots have in common, if this boot has anything in common with others.
func (cp *ControlPlane) shareBoot(share func(store clientv3.KV) error) error {
	if !cp.cfg.ordinaryBoot() {
		return nil
	}
	client, err := cp.store.Client()
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	return share(client.KV)
}

// startStore gives the store, which outlives every server, its own goroutine label.
func (cp *ControlPlane) startStore(ctx context.Context) error {
	member, err := process.Join(cp.name, cp.first().newest.flags.Process(), cp.first().log, cp.first().fail)
	if err != nil {
		return err
	}
	member.AdoptTimers()
	cp.member, cp.store = member, cp.cfg.backend(cp.name)
	cp.restorer = restore.New(cp.store)
	if cp.cfg.sharedStore {
		return nil
	}
	member.Do(func() { err = cp.store.Start(ctx) })
	return err
}

// followStore crashes the control plane, and gives up its start, when the store fails.
func (cp *ControlPlane) followStore(giveUp context.CancelCauseFunc) {
	store, ok := cp.store.(storage.Failer)
	if !ok {
		return
	}
	failed := store.Failed()
	cp.member.Go(func() {
		select {
		case <-failed:
		case <-cp.stopping.Done():
			return
		}
		err := fmt.Errorf("the store has failed: %w", store.Failure())
		cp.crash(err)
		giveUp(err)
		for _, server := range cp.servers {
			if i := server.current.Load(); i != nil {
				i.fail(err)
			}
		}
	})
}

// crash remembers the first failure that would have ended a kube-apiserver process.
func (cp *ControlPlane) crash(err error) {
	cp.crashOnce.Do(func() {
		cp.crashErr = &process.CrashError{Err: err}
		close(cp.crashed)
	})
}

// first is the server that stands for all where one is meant.
func (cp *ControlPlane) first() *Server { return cp.servers[0] }

// Trace returns the recorder of what has happened so far and of what will happen.
func (cp *ControlPlane) Trace() *trace.Recorder { return cp.recorder }

// Log returns the API server's log, or only its end if it is long. With several
// servers, their logs follow one another, each below a line with its server's name.
func (cp *ControlPlane) Log() string {
	if len(cp.servers) == 1 {
		return cp.first().Log()
	}
	var text strings.Builder
	for _, server := range cp.servers {
		fmt.Fprintf(&text, "%s:\n%s", server.name, server.Log())
	}
	return text.String()
}

// Store returns the store the control plane runs on.
func (cp *ControlPlane) Store() storage.Backend { return cp.store }

// Crashed returns a channel that is closed when an API server fails in a way that would
// have ended a kube-apiserver process; Err says how.
func (cp *ControlPlane) Crashed() <-chan struct{} { return cp.crashed }

// Err returns why the first API server to crash did so, a *process.CrashError, or nil if none has.
// A call of Server.Crash does not count.
func (cp *ControlPlane) Err() error {
	if closed(cp.crashed) {
		return cp.crashErr
	}
	return nil
}

// WaitReady waits until every server's /readyz answers 200. If the context ends
// first, the error names the failing checks and the held hooks.
func (cp *ControlPlane) WaitReady(ctx context.Context) error {
	for _, server := range cp.servers {
		if err := server.current.Load().waitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Faults returns the rules about the control plane's operations. Rules may be added
// (Inject, Gate), listed and removed while it runs.
func (cp *ControlPlane) Faults() *fault.Set { return cp.faults }

// Stop ends the API servers gracefully, then the store unless it is shared, and
// joins their goroutines. The error names what did not end in time, and rules that
// never fired and are not optional. Stop may be called twice.
func (cp *ControlPlane) Stop(ctx context.Context) error {
	cp.stopOnce.Do(func() {
		withFired := cp.withFired()
		if err := cp.release(ctx); err != nil {
			cp.stopErr = withFired(fmt.Errorf("stop control plane: %w", err))
		}
		cp.stopErr = errors.Join(cp.stopErr, cp.unfired())
	})
	return cp.stopErr
}

var errStopped = errors.New("the control plane was stopped")

// untilStop returns a context that ends when Stop begins, too: no call may keep it waiting.
func (cp *ControlPlane) untilStop(ctx context.Context) (limited context.Context, forget func()) {
	limited, end := context.WithCancelCause(ctx)
	stay := context.AfterFunc(cp.stopping, func() { end(errStopped) })
	return limited, func() {
		stay()
		end(nil)
	}
}

// release gives back what start took, in reverse.
func (cp *ControlPlane) release(ctx context.Context) error {
	ctx, cancel := cp.cfg.timeouts.boundStop(ctx)
	defer cancel()
	cp.endStopping() // who waits for virtual time goes on
	errs := []error{cp.unschedule(ctx)}
	for n, server := range slices.Backward(cp.servers) {
		part, end := cp.cfg.timeouts.share(ctx, n+1)
		errs = append(errs, server.stop(part))
		end()
	}
	cp.faults.Close()
	errs = append(errs, cp.removeKubeconfig(), cp.changes.stop(ctx), cp.webhooks.Stop(ctx))
	for _, file := range cp.webhookFiles {
		errs = append(errs, file.Remove())
	}
	if cp.store != nil && !cp.cfg.sharedStore {
		errs = append(errs, cp.store.Stop(ctx))
	}
	if cp.member != nil {
		errs = append(errs, cp.member.Wait(ctx))
		cp.member.Leave()
	}
	return errors.Join(errs...)
}
