package envtest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"

	"snowglobe.test/envtest/chain"
	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/trace"
)

// life is one run of an API server, from its boot to the end of its last
// goroutine.
type life struct {
	server    *Server
	listener  *listener
	entrance  *entrance
	store     *storage.Link
	recorder  *trace.Recorder
	member    *chain.Member // nil until start
	chain     atomic.Pointer[chain.Chain]
	hooks     hookRules
	readiness readiness

	run      context.Context
	endRun   context.CancelCauseFunc
	runEnded chan struct{}

	accepting chan struct{} // closed when requests may come in
	failOnce  sync.Once
	failed    chan struct{} // closed when the server has failed by itself
	failure   error
	dead      atomic.Bool   // crashed on purpose
	releasing atomic.Bool   // somebody ends it, and
	over      chan struct{} // is closed then
	released  chan struct{} // closed when it has ended
	leftovers error
}

// newLife makes the next life of the server, on its listener.
func newLife(s *Server) (*life, error) {
	tls, err := s.cp.upgradeTLS()
	if err != nil {
		return nil, err
	}
	l := &life{
		server: s, listener: s.listener, entrance: newEntrance(s.listener, tls),
		store: storage.NewLink(), recorder: s.cp.recorder.For(s.cp.traceName(s)),
		runEnded: make(chan struct{}), accepting: make(chan struct{}), failed: make(chan struct{}),
		over: make(chan struct{}), released: make(chan struct{}),
	}
	l.run, l.endRun = context.WithCancelCause(context.Background())
	return l, nil
}

// start builds the chain and lets it run, in a goroutine label of its own. What
// it has taken when it fails, release gives back.
func (l *life) start(ctx context.Context) error {
	flags, err := chain.ParseFlags(l.server.cp.cfg.serverFlags(l.server.index))
	if err != nil {
		return err
	}
	config := l.chainConfig(flags)
	if l.member, err = chain.Join(config.ControlPlane+"-"+config.Server, flags, l, l.fail); err != nil {
		return err
	}
	var assembled *chain.Chain
	l.member.Do(func() { assembled, err = chain.Assemble(ctx, config) })
	if l.dead.Load() && assembled == nil {
		return errors.Join(fmt.Errorf("%s has crashed while it started", l.server.name), err)
	}
	if err != nil {
		return err
	}
	l.chain.Store(assembled)
	l.server.life.Store(l)
	if err = l.hooks.add(l.server.cp.faults, l.server.name, assembled.Hooks(), l.server.cp.cfg.hooks); err != nil {
		l.endRun(err)
	}
	l.member.Go(func() {
		defer close(l.runEnded)
		if err := assembled.Run(l.run); err != nil {
			l.fail(err)
		}
		l.hooks.remove()
	})
	return err
}

func (l *life) chainConfig(flags *chain.Flags) chain.Config {
	cp := l.server.cp
	serving, err := cp.authority.Serving("localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "10.0.0.1")
	if err != nil {
		panic(err) // crypto/rand never fails
	}
	faults := cp.faults
	if cp.cfg.unbent {
		faults = nil
	}
	return chain.Config{
		ControlPlane:   cp.name,
		Server:         l.server.name,
		OwnIdentity:    cp.cfg.replicas > 1,
		Flags:          flags,
		Store:          cp.store,
		Link:           l.store,
		Writes:         cp.writes,
		CacheWindows:   cp.cfg.cacheWindows,
		Listener:       l.listener,
		Transport:      loopback{l.entrance.own, l.run.Done()},
		Accept:         l.accept,
		Drained:        l.drained,
		Serving:        serving,
		ClientCA:       cp.authority.CertPEM(),
		AccountKey:     cp.accountKey,
		Tokens:         cp.users,
		Faults:         faults,
		Kill:           l.kill,
		UpstreamPauses: cp.cfg.upstreamPauses,
		Trace:          l.recorder,
		Crash:          l.fail,
	}
}

// Write implements io.Writer for the server's log; one that is dead writes none.
func (l *life) Write(line []byte) (int, error) {
	if l.dead.Load() {
		return len(line), nil
	}
	return l.server.log.Write(line)
}

// accept lets requests in.
func (l *life) accept(handler http.Handler) {
	if l.dead.Load() {
		return
	}
	l.entrance.serving.Store(&serving{handler: handler, member: l.member})
	close(l.accepting)
}

// drained lets no more requests in, and closes the connections as the end of a
// process would.
func (l *life) drained() {
	l.entrance.serving.Store(nil)
	l.listener.conns.CloseAll()
}

// fail notes the first failure that would have ended a kube-apiserver process,
// and ends the chain.
func (l *life) fail(err error) {
	if l.dead.Load() {
		return
	}
	l.failOnce.Do(func() {
		l.failure = err
		close(l.failed)
		l.server.cp.crash(err)
		l.endRun(err)
	})
}

func (l *life) err() error {
	if closed(l.failed) {
		return l.failure
	}
	return nil
}

// running says whether nothing has ended the life yet.
func (l *life) running() bool {
	return !closed(l.over) && !l.dead.Load() && !closed(l.failed)
}

// kill crashes the server because of a rule. Much of upstream can be joined only
// when its boot has come to its end, for which it needs a store; so before that,
// and when the server stops anyway, it is a failure of the server.
func (l *life) kill(cause error) {
	if c := l.chain.Load(); c == nil || !c.BeenReady() || l.releasing.Load() {
		l.fail(cause)
		return
	}
	l.crash(cause)
}

// crash is how a process ends that is killed: nobody hears of it any more. Its
// goroutines end in the background.
func (l *life) crash(cause error) {
	if closed(l.released) || !l.dead.CompareAndSwap(false, true) {
		return
	}
	l.recorder.Record(trace.Note{Text: fmt.Sprintf("%s crashed: %v", l.server.name, cause)})
	l.recorder.Close()
	l.entrance.reset()
	l.listener.reset()
	l.store.Break()
	if c := l.chain.Load(); c != nil {
		c.Kill()
	}
	l.endRun(cause)
	go func() {
		// Whoever asked for it may be the server itself, for whose goroutines
		// this one waits.
		pprof.SetGoroutineLabels(context.Background())
		ctx, cancel := l.server.cp.cfg.timeouts.boundStop(context.Background())
		defer cancel()
		_ = l.release(ctx) // who waits for it is told
	}()
}

// release ends the life gracefully, if it has not ended, and joins it. Who comes
// second waits for the first, on a channel so that time can pass.
func (l *life) release(ctx context.Context) error {
	if l.releasing.CompareAndSwap(false, true) {
		close(l.over)
		l.leftovers = l.join(ctx)
		close(l.released)
		return l.leftovers // even if the time is up: it says what for
	}
	select {
	case <-l.released:
		return l.leftovers
	case <-ctx.Done():
		return fmt.Errorf("%s has not ended: %w", l.server.name, context.Cause(ctx))
	}
}

func (l *life) join(ctx context.Context) error {
	var errs []error
	if l.store.IsCut() {
		l.store.Break() // nothing would get through, and much would wait for it
	}
	l.endRun(errStopped)
	if l.chain.Load() != nil {
		select {
		case <-l.runEnded:
		case <-ctx.Done():
			errs = append(errs, fmt.Errorf("%s has not terminated: %w%s", l.server.name, context.Cause(ctx), l.kept()))
			l.chain.Load().EndFaults()
			var cancel context.CancelFunc
			ctx, cancel = l.grace(ctx)
			defer cancel()
		}
	}
	errs = append(errs, l.entrance.end(ctx))
	l.listener.end()
	if l.member != nil {
		errs = append(errs, l.member.Join(ctx))
		l.member.Leave()
	}
	return errors.Join(errs...)
}

// kept is the end of a message about a server that does not terminate: what
// rules hold of it.
func (l *life) kept() string {
	var held []string
	for _, entry := range l.server.cp.faults.Rules() {
		gate := entry.Gate()
		if gate == nil {
			continue
		}
		for _, op := range gate.Waiting() {
			if op.Server == l.server.name {
				held = append(held, fmt.Sprintf("%s waits because of the rule %q", op, entry.Rule()))
			}
		}
	}
	if len(held) == 0 {
		return ""
	}
	return "; " + strings.Join(held, "; ")
}

// grace is the time that a server has to end of which the rules have let go at
// the end of its time: as much once more.
func (l *life) grace(ctx context.Context) (context.Context, context.CancelFunc) {
	d := l.server.cp.cfg.timeouts.stop
	return context.WithTimeoutCause(context.WithoutCancel(ctx), d, fmt.Errorf("not within %s more", d))
}
