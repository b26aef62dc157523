package envtest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"snowglobe.test/envtest/chain"
)

// life is one run of an API server, from its boot to the end of its last
// goroutine.
type life struct {
	server    *Server
	listener  *listener
	entrance  *entrance
	member    *chain.Member // nil until start
	chain     *chain.Chain  // nil until it is assembled
	readiness readiness

	run      context.Context
	endRun   context.CancelCauseFunc
	runEnded chan struct{}

	accepting chan struct{} // closed when requests may come in
	failOnce  sync.Once
	failed    chan struct{} // closed when the server has failed, by itself
	failure   error
}

// born makes the next life of the server, on its listener.
func (s *Server) born() (*life, error) {
	tls, err := s.cp.upgradeTLS()
	if err != nil {
		return nil, err
	}
	l := &life{
		server: s, listener: s.listener, entrance: newEntrance(s.listener, tls),
		runEnded: make(chan struct{}), accepting: make(chan struct{}), failed: make(chan struct{}),
	}
	l.run, l.endRun = context.WithCancelCause(context.Background())
	s.life.Store(l)
	return l, nil
}

// start builds the chain and lets it run, in a goroutine label of its own. What
// it has taken when it fails, release gives back.
func (l *life) start(ctx context.Context) error {
	cp := l.server.cp
	flags, err := chain.ParseFlags(cp.cfg.flags)
	if err != nil {
		return err
	}
	if l.member, err = chain.Join(cp.name+"/"+l.server.name, flags, l.server.log, l.fail); err != nil {
		return err
	}
	l.member.Do(func() { l.chain, err = chain.Assemble(ctx, l.chainConfig()) })
	if err != nil {
		return err
	}
	l.member.Go(func() {
		defer close(l.runEnded)
		if err := l.chain.Run(l.run); err != nil {
			l.fail(err)
		}
	})
	return nil
}

func (l *life) chainConfig() chain.Config {
	cp := l.server.cp
	serving, err := cp.authority.Serving("localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "10.0.0.1")
	if err != nil {
		panic(err) // crypto/rand never fails
	}
	return chain.Config{
		Name:           cp.name,
		Flags:          cp.cfg.flags,
		Store:          cp.store,
		Listener:       l.listener,
		Transport:      loopback{l.entrance, l.run.Done()},
		Accept:         l.accept,
		Drained:        l.drained,
		Serving:        serving,
		ClientCA:       cp.authority.CertPEM(),
		Tokens:         cp.users,
		AccountKey:     cp.accountKey,
		Faults:         cp.faults,
		Server:         l.server.name,
		Kill:           l.fail,
		Hooks:          cp.cfg.hooks,
		UpstreamPauses: cp.cfg.upstreamPauses,
		CacheWindows:   cp.cfg.cacheWindows,
		StopBefore:     cp.cfg.stopBefore,
		Trace:          cp.recorder,
		Crash:          l.fail,
	}
}

// accept lets requests in.
func (l *life) accept(handler http.Handler) {
	l.entrance.serving.Store(&serving{handler: handler, member: l.member})
	close(l.accepting)
}

// drained lets no more requests in, and closes the connections as the end of a
// process would.
func (l *life) drained() {
	l.entrance.serving.Store(nil)
	l.listener.closeConns()
}

// fail notes the first failure that would have ended a kube-apiserver process,
// and ends the chain.
func (l *life) fail(err error) {
	l.failOnce.Do(func() {
		l.failure = err
		close(l.failed)
		l.server.cp.crash(err)
		l.endRun(err)
	})
}

// release ends the life gracefully, if it has not ended, and joins it.
func (l *life) release(ctx context.Context) error {
	var errs []error
	l.endRun(errStopped)
	if l.chain != nil {
		select {
		case <-l.runEnded:
		case <-ctx.Done():
			errs = append(errs, fmt.Errorf("%s has not terminated: %w%s", l.server.name, context.Cause(ctx), l.kept()))
			l.chain.LetGo()
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
