package cluster

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc"
)

// member is one etcd server, running or not. The Store's mutex guards it.
type member struct {
	name   string
	folder string  // of its sockets and its data
	client *socket // where clients connect
	peer   *socket // where the other members connect, through relay
	relay  *relay

	etcd   *embed.Etcd // nil while the member does not run
	serves *service    // what etcd offers to clients
	id     types.ID    // set by the first start
	cut    bool
	killed kill // the latest
}

// maxSocketPath is the lowest limit of any OS on the path of a unix socket, in bytes.
const maxSocketPath = 103

func newMember(i int, run string) (*member, error) {
	m := &member{name: fmt.Sprintf("member-%d", i), folder: filepath.Join(run, strconv.Itoa(i))}
	m.client = newSocket(m.name, filepath.Join(m.folder, "client"))
	m.peer = newSocket(m.name+" (peers)", filepath.Join(m.folder, "peer"))
	if len(m.client.path) > maxSocketPath {
		return nil, fmt.Errorf("the path of socket %s has more than %d bytes; set TMPDIR to a folder with a shorter path", m.client.path, maxSocketPath)
	}
	if err := os.Mkdir(m.folder, 0o700); err != nil {
		return nil, err
	}
	var err error
	if m.relay, err = listenRelay(m.peer); err != nil {
		return nil, fmt.Errorf("port for the peers of %s: %w", m.name, err)
	}
	return m, nil
}

// peerURL is where the other members connect to this one.
func (m *member) peerURL() url.URL { return url.URL{Scheme: "http", Host: m.relay.address()} }

// start starts the server; it serves once a quorum of the cluster runs.
func (m *member) start(cfg Config, clientURL url.URL, initialCluster string) error {
	etcd := embed.NewConfig()
	etcd.Name = m.name
	etcd.Dir = filepath.Join(m.folder, "data")
	etcd.UnsafeNoFsync = true
	etcd.LogLevel = "panic"
	// etcd takes the client's socket from Path and the peer's from Host.
	etcd.ListenClientUrls = []url.URL{{Scheme: "unix", Path: m.client.path}}
	etcd.ListenPeerUrls = []url.URL{{Scheme: "unix", Host: m.peer.path}}
	etcd.AdvertiseClientUrls, etcd.AdvertisePeerUrls = []url.URL{clientURL}, []url.URL{m.peerURL()}
	etcd.InitialCluster = initialCluster
	etcd.ElectionMs = uint(cfg.ElectionTimeout.Milliseconds())
	etcd.TickMs = etcd.ElectionMs / 10
	etcd.EnableGRPCGateway = false
	serves := &service{socket: m.client}
	etcd.ServiceRegister = serves.begin
	etcd.GRPCAdditionalServerOptions = []grpc.ServerOption{grpc.WaitForHandlers(true)}
	server, err := embed.StartEtcd(etcd)
	if err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	m.etcd, m.serves, m.id = server, serves, server.Server.MemberID()
	m.peer.setOpen(!m.cut)
	return nil
}

// kill stops a running server in the background as if its process had been killed:
// connections break, leadership is not handed over. It returns the latest kill.
func (m *member) kill() kill {
	if m.etcd == nil {
		return m.killed
	}
	server, serves, done := m.etcd, m.serves, make(chan struct{})
	m.etcd, m.serves, m.killed = nil, nil, kill{m.name, done}
	m.peer.setOpen(false)
	go func() {
		defer close(done)
		// End the clients' calls first, or they would use a closed database. Then
		// stop the server hard: Close alone would hand over the leadership, and
		// would wait for a server that never had a quorum. Close does the rest.
		serves.end()
		server.Server.HardStop()
		server.Close()
	}()
	return m.killed
}

// kill is a kill of a member; the zero value is one that has long finished.
type kill struct {
	name string // the member's
	done chan struct{}
}

func (k kill) wait(ctx context.Context) error {
	if k.done == nil {
		return nil
	}
	select {
	case <-k.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s is still stopping: %w", k.name, context.Cause(ctx))
	}
}

// cutPeer starts or stops dropping what this member exchanges with another.
func (m *member) cutPeer(other *member, cut bool) {
	if m.etcd == nil || m == other {
		return
	}
	if cut {
		m.etcd.Server.CutPeer(other.id)
	} else {
		m.etcd.Server.MendPeer(other.id)
	}
}

// service is what a running member offers to clients. Their socket is open only
// between begin and end, so that they have no call under way outside of that.
type service struct {
	socket *socket

	mu    sync.Mutex
	grpc  *grpc.Server // nil until the member serves
	ended bool
}

// begin is called by etcd when it is about to serve.
func (s *service) begin(server *grpc.Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.grpc = server
	s.socket.setOpen(true)
}

// end breaks the clients' connections and waits until no call is under way.
func (s *service) end() {
	s.mu.Lock()
	s.ended = true
	server := s.grpc
	s.socket.setOpen(false)
	s.mu.Unlock()
	if server != nil {
		server.Stop()
	}
}
