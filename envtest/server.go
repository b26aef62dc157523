package envtest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"

	"snowglobe.test/envtest/chain"
)

// Server is one API server of a control plane. All its methods may be called
// from any goroutine.
type Server struct {
	cp         *ControlPlane
	name       string
	log        *logBuffer
	heldCaches heldCaches

	addr     *net.TCPAddr // where it is, from the first time it listens
	hasPort  bool
	listener *listener // of the life that there is, or will be next

	life atomic.Pointer[life] // nil until there is a chain
}

func newServer(cp *ControlPlane, index int) *Server {
	return &Server{cp: cp, name: fmt.Sprintf("apiserver-%d", index), log: newLogBuffer(cp.log)}
}

// listen makes the listener of the next life.
func (s *Server) listen() error {
	l, err := listen(s.cp.cfg)
	if err != nil {
		return err
	}
	s.listener, s.addr, s.hasPort = l, l.addr, l.hasPort()
	return nil
}

// boot starts the server and waits until it is ready or, when something is held,
// until it accepts requests. A boot that fails leaves nothing behind.
func (s *Server) boot(ctx context.Context) error {
	l, err := s.born()
	if err != nil {
		return err
	}
	if err = l.start(ctx); err == nil {
		err = l.waitStarted(ctx)
	}
	return err
}

// release ends what there is of the server, gracefully, and joins it.
func (s *Server) release(ctx context.Context) error {
	if l := s.life.Load(); l != nil {
		return l.release(ctx)
	}
	if s.listener != nil {
		s.listener.end()
	}
	return nil
}

// fail is told of failures that nobody asked for.
func (s *Server) fail(err error) {
	if l := s.life.Load(); l != nil {
		l.fail(err)
	} else {
		s.cp.crash(err)
	}
}

// RoundTrip carries a request to the server as it is now.
func (s *Server) RoundTrip(req *http.Request) (*http.Response, error) {
	return s.life.Load().entrance.RoundTrip(req)
}

func (s *Server) chain() *chain.Chain { return s.life.Load().chain }

// Name returns what rules call the server: "apiserver-0", "apiserver-1", ... It
// is the same in every run.
func (s *Server) Name() string { return s.name }

// Log returns the server's log, or the end of it when it is long.
func (s *Server) Log() string { return s.log.String() }

// Ready asks /readyz once, records the checks that turned, and says whether the
// answer was 200.
func (s *Server) Ready(ctx context.Context) bool { return s.life.Load().ready(ctx) }

// WaitReady waits until /readyz answers 200. When the context ends first, the
// error names the checks that are red and the hooks that are held.
func (s *Server) WaitReady(ctx context.Context) error { return s.life.Load().waitReady(ctx) }

// RedChecks returns the readiness checks that were red when they were last
// asked, in upstream's order.
func (s *Server) RedChecks() []string { return s.life.Load().redChecks() }

// Hooks returns the names of the post-start hooks, sorted.
func (s *Server) Hooks() []string { return s.chain().Hooks() }

// HeldHooks returns the names of the post-start hooks that are held, sorted.
func (s *Server) HeldHooks() []string { return s.chain().HeldHooks() }

// ReleaseHook lets a post-start hook run that HoldHook holds. Releasing one that
// is not held is an error that names those that are.
func (s *Server) ReleaseHook(name string) error { return s.chain().ReleaseHook(name) }

// FireSignal fires one of upstream's lifecycle signals before its time; see
// ControlPlane.FireSignal.
func (s *Server) FireSignal(name string) error { return s.chain().FireSignal(name) }
