package envtest

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"sync/atomic"

	"k8s.io/client-go/rest"

	"snowglobe.test/envtest/chain"
	"snowglobe.test/envtest/serve"
	"snowglobe.test/internal/serverlog"
	"snowglobe.test/internal/turn"
)

// Server is one API server of a control plane, with its own log, readiness and
// faults. It can crash, stop and restart. All its methods may be called from any
// goroutine.
type Server struct {
	cp     *ControlPlane
	index  int
	name   string
	log    *serverlog.Buffer
	client *Client // that goes to this server only

	// turn is a lock on starts and stops: a channel, so that time passes meanwhile.
	turn    turn.Lock
	addr    *net.TCPAddr // where it is, from the first time it listens
	hasPort bool
	newest  *instance // nil before the first boot
	boots   int       // so far, of which a pool allows one

	current atomic.Pointer[instance] // the newest that has had a chain
}

func newServer(cp *ControlPlane, index int) *Server {
	s := &Server{cp: cp, index: index, name: fmt.Sprintf("apiserver-%d", index), log: serverlog.NewBuffer(cp.log), turn: turn.New()}
	s.client = newClient(cp, clientName(0), s)
	return s
}

// connect opens a connection to the server as it is now.
func (s *Server) connect(certificates []*x509.Certificate) (*serve.Connection, error) {
	if i := s.current.Load(); i != nil {
		return i.endpoint.Connect(certificates...)
	}
	return nil, serve.ErrRefused
}

// fail is told of failures that the test did not ask for.
func (s *Server) fail(err error) {
	if i := s.current.Load(); i != nil {
		i.fail(err)
	} else {
		s.cp.crash(err)
	}
}

func (s *Server) chain() *chain.Chain { return s.current.Load().chain.Load() }

// Name returns the server's name in rules, the same in every run: "apiserver-0" and so on.
func (s *Server) Name() string { return s.name }

// Config is ControlPlane.Config, but all requests go to this server.
func (s *Server) Config(opts ...ConfigOption) *rest.Config { return s.client.Config(opts...) }

// Log returns the server's log, or only its end if it is long, across restarts.
func (s *Server) Log() string { return s.log.String() }

// Ready asks /readyz once and records the checks that changed. It returns whether
// the answer was 200, and which checks were failing, in upstream's order. A server that
// is not running is not ready.
func (s *Server) Ready(ctx context.Context) (ready bool, red []string) {
	return s.current.Load().ready(ctx)
}
