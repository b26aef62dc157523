package cluster

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc"

	"snowglobe.test/envtest/storage/internal/etcdlog"
)

// member is one etcd server of the cluster, running or not. The mutex of the
// Store guards it.
type member struct {
	name   string
	folder string // of its sockets and its data
	client *gate  // its clients' way to it
	peer   *gate  // the other members' way to it
	relay  *relay // the port of peer

	etcd   *embed.Etcd // nil while the member does not run
	serves *service    // of etcd
	id     types.ID    // known from the first start on
	cut    bool
	killed chan struct{} // closed when the last kill is over; nil before the first
}

// maxSocketPath is how long the path of a unix socket may be on the system that
// allows the least.
const maxSocketPath = 103

func newMember(i int, run string) (*member, error) {
	m := &member{name: fmt.Sprintf("member-%d", i), folder: filepath.Join(run, strconv.Itoa(i))}
	m.client = newGate(m.name, filepath.Join(m.folder, "client"))
	m.peer = newGate(m.name+" (peers)", filepath.Join(m.folder, "peer"))
	if len(m.client.socket) > maxSocketPath {
		return nil, fmt.Errorf("the path of socket %s has more than %d bytes; set TMPDIR to a folder with a shorter path", m.client.socket, maxSocketPath)
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

// peerURL is where the other members find this one.
func (m *member) peerURL() url.URL { return url.URL{Scheme: "http", Host: m.relay.address()} }

// start starts the server; it serves once a quorum of the cluster runs.
func (m *member) start(cfg Config, clientURL url.URL, initialCluster string) error {
	etcd := embed.NewConfig()
	etcd.Name = m.name
	etcd.Dir = filepath.Join(m.folder, "data")
	etcd.UnsafeNoFsync = true
	etcd.ZapLoggerBuilder = embed.NewZapLoggerBuilder(etcdlog.New())
	// The client's socket is a path, the peer's a host: this is where etcd looks.
	etcd.ListenClientUrls = []url.URL{{Scheme: "unix", Path: m.client.socket}}
	etcd.ListenPeerUrls = []url.URL{{Scheme: "unix", Host: m.peer.socket}}
	etcd.AdvertiseClientUrls, etcd.AdvertisePeerUrls = []url.URL{clientURL}, []url.URL{m.peerURL()}
	etcd.InitialCluster = initialCluster
	etcd.ElectionMs = uint(cfg.ElectionTimeout.Milliseconds())
	etcd.TickMs = etcd.ElectionMs / 10
	etcd.EnableGRPCGateway = false
	serves := &service{gate: m.client}
	etcd.ServiceRegister = serves.begin
	etcd.GRPCAdditionalServerOptions = []grpc.ServerOption{grpc.WaitForHandlers(true)}
	server, err := embed.StartEtcd(etcd)
	if err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	m.etcd, m.serves, m.id = server, serves, server.Server.MemberID()
	m.peer.set(!m.cut)
	return nil
}

// kill ends the server as if its process had been killed, in the background:
// connections break and leadership is not handed over. What was acknowledged
// stays in its folder.
func (m *member) kill() {
	if m.etcd == nil {
		return
	}
	server, serves, killed := m.etcd, m.serves, make(chan struct{})
	m.etcd, m.serves, m.killed = nil, nil, killed
	m.peer.set(false)
	go func() {
		defer close(killed)
		// First the calls of clients, for they would meet a closed database. Then
		// the server, which would hand over its leadership in Close; and Close
		// would wait for a server that never had a quorum to serve. Then the rest.
		serves.end()
		server.Server.HardStop()
		server.Close()
	}()
}

// cutPeer drops what this member sends to another one and what it gets from it,
// or mends that.
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

// over waits until a kill is over. The channel is nil before the first one.
func over(ctx context.Context, name string, killed <-chan struct{}) error {
	if killed == nil {
		return nil
	}
	select {
	case <-killed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s is still stopping: %w", name, context.Cause(ctx))
	}
}
