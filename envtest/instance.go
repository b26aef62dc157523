package envtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"snowglobe.test/envtest/chain"
	"snowglobe.test/envtest/process"
	"snowglobe.test/envtest/serve"
	"snowglobe.test/envtest/sim"
	"snowglobe.test/envtest/storage/intercept"
	"snowglobe.test/envtest/trace"
	"snowglobe.test/envtest/virtualtime"
	"snowglobe.test/internal/turn"
)

// instance is one run of an API server, from boot to the end of its last goroutine.
type instance struct {
	server    *Server
	flags     *chain.Flags
	endpoint  *serve.Endpoint
	store     *intercept.Connection
	recorder  *trace.Recorder
	member    *process.Member // nil until start
	chain     atomic.Pointer[chain.Chain]
	readiness readiness

	run      context.Context
	endRun   context.CancelCauseFunc
	runEnded chan struct{}
	began    time.Time // when the chain began to run

	life    *life
	watched chan struct{} // closed when nothing waits for the chain to be killed any more
}

// newInstance makes the server's next instance, listening where the last one did.
func newInstance(s *Server) (*instance, error) {
	cp := s.cp
	flags, err := chain.ParseFlags(cp.cfg.flags, chain.Defaults{
		Index: s.index, Replicas: cp.cfg.replicas, WithoutHousekeeping: cp.cfg.withoutHousekeeping,
	})
	if err != nil {
		return nil, err
	}
	certificates := flags.ServingCertificate()
	cp.serving.Store(&certificates)
	tls, err := cp.upgradeTLS()
	if err != nil {
		return nil, err
	}
	i := &instance{
		server: s, flags: flags, store: intercept.NewConnection(), recorder: cp.recorder.For(cp.traceName(s)),
		readiness: readiness{turn: turn.New(), known: map[string]bool{}},
		life:      newLife(), runEnded: make(chan struct{}), watched: make(chan struct{}),
	}
	if virtualtime.Virtual() {
		i.store.PromiseLeases()
	}
	i.endpoint, err = serve.Listen(serve.Config{
		Address: s.address(), TLS: tls,
		Enter: func() (leave func()) { return i.member.Enter() },
	})
	if err != nil {
		return nil, err
	}
	i.run, i.endRun = context.WithCancelCause(context.Background())
	return i, nil
}

// start builds and runs the chain, under a goroutine label of its own. If it fails,
// release gives back what it took.
func (i *instance) start(ctx context.Context) error {
	config, err := i.chainConfig()
	if err != nil {
		return err
	}
	if i.member, err = process.Join(i.server.memberName(), i.flags.Process(), i, i.fail); err != nil {
		return err
	}
	i.member.DialKMS(config.Dial)
	assembled, err := i.assemble(ctx, config)
	if err != nil {
		return err
	}
	i.chain.Store(assembled)
	i.server.current.Store(i)
	i.watchKill(assembled)
	i.began = time.Now()
	i.member.Go(func() {
		defer close(i.runEnded)
		if err := assembled.Run(i.run); err != nil {
			i.fail(err)
		}
	})
	return nil
}

// assemble builds the chain in a goroutine that a fatal log line or panic may end.
func (i *instance) assemble(ctx context.Context, config chain.Config) (assembled *chain.Chain, err error) {
	<-i.member.Go(func() {
		i.flags.LogRemarks()
		assembled, err = chain.Assemble(ctx, config)
	})
	if assembled == nil && err == nil {
		err = i.life.err()
	}
	return assembled, err
}

func (i *instance) chainConfig() (chain.Config, error) {
	cp := i.server.cp
	serving, err := cp.authority.Serving("localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "10.0.0.1")
	if err != nil {
		return chain.Config{}, fmt.Errorf("serving certificate: %w", err)
	}
	settled := !virtualtime.Virtual()
	if cp.cfg.settledWrites != nil {
		settled = *cp.cfg.settledWrites
	}
	faults := cp.faults
	if cp.cfg.withoutFaults {
		faults = nil
	}
	return chain.Config{
		ControlPlane:   cp.name,
		Server:         i.server.name,
		OwnIdentity:    cp.cfg.replicas > 1,
		Flags:          i.flags,
		Store:          cp.store,
		Connection:     i.store,
		Endpoint:       i.endpoint,
		Dial:           cp.cfg.dial,
		DialInProcess:  cp.webhooks.Dial,
		Serving:        chain.KeyPair(serving),
		ClientCA:       cp.authority.CertPEM(),
		FrontProxy:     cp.frontProxy,
		Tokens:         cp.users,
		AccountKey:     cp.accountKey,
		Faults:         faults,
		Restorer:       cp.restorer,
		SettledWrites:  settled,
		UpstreamPauses: virtualtime.Virtual() && !cp.cfg.promptHooks, // where they cost nothing
		Bootstrapped:   cp.bootstrapped,
		Virtual:        virtualtime.Virtual(),
		OwnDocuments:   sim.Enabled(), // building them takes random numbers of the seed
		PostStartHooks: cp.cfg.hooks,
		CacheWindows:   cp.cfg.cacheWindows,
		Trace:          i.recorder,
		Crash:          i.fail,
	}, nil
}

// Write implements io.Writer for the server's log. A dead server logs nothing.
func (i *instance) Write(line []byte) (int, error) {
	if i.dead() {
		return len(line), nil
	}
	return i.server.log.Write(line)
}

// fail keeps the first failure that would end a kube-apiserver, and ends the chain.
func (i *instance) fail(err error) {
	if i.dead() {
		return
	}
	if i.server.cp.cfg.replicas > 1 {
		err = fmt.Errorf("%s: %w", i.server.name, err)
	}
	err = i.server.cp.withFired()(err)
	failure := &process.CrashError{Err: err}
	if !i.life.fail(failure) {
		return
	}
	i.server.cp.crash(err)
	i.endRun(failure)
}

// running says whether nothing has ended the instance yet.
func (i *instance) running() bool { return i.life.is(phaseRunning) && !i.dead() }

// dead says whether the server was crashed on purpose: no client hears of it any more.
func (i *instance) dead() bool {
	c := i.chain.Load()
	return c != nil && c.Dead()
}

// crash is chain.Kill; the server's goroutines end in the background.
func (i *instance) crash(ctx context.Context) error {
	if i.life.is(phaseEnded) {
		return nil
	}
	err := i.chain.Load().Kill(ctx, errOnPurpose)
	if err != nil {
		err = fmt.Errorf("%w%s", err, i.server.atWork())
	}
	return err
}

// watchKill releases the instance when its chain has been killed, by whomever.
func (i *instance) watchKill(c *chain.Chain) {
	go func() {
		select {
		case <-c.Killed():
			close(i.watched)
		case <-i.life.past(phaseFailed):
			close(i.watched)
			return
		}
		i.endRun(errOnPurpose)
		ctx, cancel := i.server.cp.cfg.timeouts.boundStop(context.Background())
		defer cancel()
		_ = i.release(ctx) // who waits for it is told
	}()
}

// release ends the instance gracefully, if it has not ended, and joins it. A second
// caller waits for the first, on a channel so that time can pass.
func (i *instance) release(ctx context.Context) error {
	if i.life.enter(phaseEnding) {
		i.life.end(i.join(ctx))
		return i.life.left() // even if the time is up: it says what for
	}
	select {
	case <-i.life.past(phaseEnding):
		return i.life.left()
	case <-ctx.Done():
		return fmt.Errorf("%s has not ended: %w%s", i.server.name, context.Cause(ctx), i.server.atWork())
	}
}

func (i *instance) join(ctx context.Context) error {
	var errs []error
	if i.store.Partitioned() { // nothing would get through, and much would wait for it
		errs = append(errs, i.store.Break(ctx))
	}
	i.endRun(errStopped)
	if i.chain.Load() != nil {
		asked, forget := i.server.cp.cfg.timeouts.asked(ctx)
		defer forget()
		select {
		case <-i.runEnded:
		case <-asked.Done():
			errs = append(errs, fmt.Errorf("%s has not terminated: %w%s", i.server.name, context.Cause(asked), i.inTheWay()))
			i.chain.Load().EndFaults()
			var cancel context.CancelFunc
			ctx, cancel = i.server.cp.cfg.timeouts.force(ctx)
			defer cancel()
			select { // upstream must know that it stops before its listener is closed
			case <-i.runEnded:
			case <-ctx.Done():
			}
		}
		<-i.watched
	}
	errs = append(errs, i.endpoint.Stop(ctx))
	if i.member != nil {
		errs = append(errs, i.member.Wait(ctx))
		i.member.Leave()
	}
	return errors.Join(errs...)
}

// inTheWay says what keeps the server from terminating, to end an error with: what rules
// hold, or else all that it does.
func (i *instance) inTheWay() string {
	if held := i.heldByRules(); held != "" {
		return held
	}
	return i.server.atWork()
}

// heldByRules says which operations of the server rules hold, to end an error with.
func (i *instance) heldByRules() string {
	var held []string
	for _, entry := range i.server.cp.faults.Rules() {
		gate := entry.Gate()
		if gate == nil {
			continue
		}
		for _, op := range gate.Waiting() {
			if op.Server == i.server.name {
				held = append(held, fmt.Sprintf("%s waits because of the rule %q", op, entry.Rule()))
			}
		}
	}
	if len(held) == 0 {
		return ""
	}
	return "; " + strings.Join(held, "; ")
}
