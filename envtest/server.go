package envtest

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"

	"k8s.io/client-go/rest"

	"snowglobe.test/envtest/chain"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/serve"
)

// Server is one API server of a control plane. It has a log, a readiness and faults
// of its own; it can crash, be stopped, and start again. All its methods may be
// called from any goroutine.
type Server struct {
	cp     *ControlPlane
	index  int
	name   string
	log    *logBuffer
	client *Client // that goes to this server only

	// turn has room for the one that listens, starts or stops the server: a
	// channel, because time must pass while others wait.
	turn    chan struct{}
	addr    *net.TCPAddr // where it is, from the first time it listens
	hasPort bool
	newest  *instance // nil before the first boot

	current atomic.Pointer[instance] // the newest that has had a chain
}

func newServer(cp *ControlPlane, index int) *Server {
	s := &Server{cp: cp, index: index, name: fmt.Sprintf("apiserver-%d", index), log: newLogBuffer(cp.log), turn: make(chan struct{}, 1)}
	s.client = newClient(cp, 0, s)
	return s
}

// connect opens a connection to the server as it is now.
func (s *Server) connect() (*serve.Connection, error) {
	if i := s.current.Load(); i != nil {
		return i.endpoint.Connect()
	}
	return nil, serve.ErrRefused
}

// fail is told of failures that nobody asked for.
func (s *Server) fail(err error) {
	if i := s.current.Load(); i != nil {
		i.fail(err)
	} else {
		s.cp.crash(err)
	}
}

func (s *Server) chain() *chain.Chain { return s.current.Load().chain.Load() }

// Name returns what rules call the server: "apiserver-0", "apiserver-1", ... It
// is the same in every run.
func (s *Server) Name() string { return s.name }

// Config returns a configuration of a cluster admin whose requests go to this
// server and no other, inside the process. The caller may change the copy.
func (s *Server) Config() *rest.Config { return s.client.Config() }

// Log returns the server's log, or the end of it when it is long. A restart goes
// on with it.
func (s *Server) Log() string { return s.log.String() }

// Ready asks /readyz once and records the checks that turned. It says whether the
// answer was 200, and which checks were red, in upstream's order. A server that does
// not run is not ready.
func (s *Server) Ready(ctx context.Context) (ready bool, red []string) {
	return s.current.Load().ready(ctx)
}

// FireSignal fires one of upstream's lifecycle signals before its time, as a bug
// would: MuxAndDiscoveryComplete, HasBeenReady, ... An unknown one is an error
// that names them all.
func (s *Server) FireSignal(name string) error { return s.chain().FireSignal(name) }

// CutStore cuts the network between the server and the store, until heal is called or
// the server ends: its operations wait and lose patience after a while, as upstream's
// clients do, and its watches hear nothing. After heal, what waits goes on, and
// watches tell what was missed. It is the rule "partition store server=NAME".
func (s *Server) CutStore() (heal func()) {
	heal = s.cp.partition(fault.StorePath + " server=" + s.name)
	context.AfterFunc(s.current.Load().run, heal)
	return heal
}
