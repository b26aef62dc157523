package envtest

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"

	"k8s.io/client-go/rest"

	"snowglobe.test/envtest/chain"
)

// Server is one API server of a control plane. It has a log, a readiness and
// faults of its own, and a life: it can crash, be stopped, and start again. All
// its methods may be called from any goroutine.
type Server struct {
	cp         *ControlPlane
	index      int
	name       string
	log        *logBuffer
	heldCaches heldCaches
	link       *Link // that leads here only

	// turn has room for the one that listens, starts or stops the server: a
	// channel, because time must pass while others wait.
	turn     chan struct{}
	addr     *net.TCPAddr // where it is, from the first time it listens
	hasPort  bool
	listener *listener // of the newest life
	newest   *life     // nil before the first boot

	life atomic.Pointer[life] // the newest that has had a chain
}

func newServer(cp *ControlPlane, index int) *Server {
	s := &Server{cp: cp, index: index, name: fmt.Sprintf("apiserver-%d", index), log: newLogBuffer(cp.log), turn: make(chan struct{}, 1)}
	s.link = newLink(cp, s)
	return s
}

// connect opens a connection to the server as it is now.
func (s *Server) connect() (*connection, error) {
	if l := s.life.Load(); l != nil {
		return l.entrance.connect()
	}
	return nil, errRefused
}

// fail is told of failures that nobody asked for.
func (s *Server) fail(err error) {
	if l := s.life.Load(); l != nil {
		l.fail(err)
	} else {
		s.cp.crash(err)
	}
}

func (s *Server) chain() *chain.Chain { return s.life.Load().chain.Load() }

// Name returns what rules call the server: "apiserver-0", "apiserver-1", ... It
// is the same in every run.
func (s *Server) Name() string { return s.name }

// Config returns a configuration of a cluster admin whose requests go to this
// server and no other, inside the process. The caller may change the copy.
func (s *Server) Config() *rest.Config { return s.link.Config() }

// Log returns the server's log, or the end of it when it is long. A restart goes
// on with it.
func (s *Server) Log() string { return s.log.String() }

// Crashed is closed when the server, as it was last started, has failed in a way
// that would have ended a kube-apiserver process and that nobody asked for.
func (s *Server) Crashed() <-chan struct{} { return s.life.Load().failed }

// Err returns how the server has failed by itself, nil if it has not.
func (s *Server) Err() error { return s.life.Load().err() }

// Ready asks /readyz once, records the checks that turned, and says whether the
// answer was 200. A server that does not run is not ready.
func (s *Server) Ready(ctx context.Context) bool { return s.life.Load().ready(ctx) }

// WaitReady waits until /readyz answers 200. When the context ends first, the
// error names the checks that are red and the hooks that are held.
func (s *Server) WaitReady(ctx context.Context) error { return s.life.Load().waitReady(ctx) }

// RedChecks returns the readiness checks that were red when they were last
// asked, in upstream's order.
func (s *Server) RedChecks() []string { return s.life.Load().redChecks() }

// Hooks returns the names of the post-start hooks, sorted.
func (s *Server) Hooks() []string { return s.chain().Hooks() }

// FireSignal fires one of upstream's lifecycle signals before its time; see
// ControlPlane.FireSignal.
func (s *Server) FireSignal(name string) error { return s.chain().FireSignal(name) }

// CutStore cuts the network between the server and the store, until HealStore or
// the end of the server: its operations wait and lose patience after a while,
// as upstream's clients do, and its watches hear nothing.
func (s *Server) CutStore() { s.life.Load().store.Cut() }

// HealStore ends CutStore: what waits goes on, and watches tell what was missed.
func (s *Server) HealStore() { s.life.Load().store.Heal() }
