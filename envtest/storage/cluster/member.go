package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/embed"

	"snowglobe.test/envtest/storage/disk"
)

// member is one etcd server, running or not. The Store's mutex guards it.
type member struct {
	name   string
	folder string // of its sockets and its data
	peers  *peerTLS
	client *socket // where clients connect
	peer   *socket // where the other members connect, through relay
	relay  *relay

	server *disk.Server // nil while the member does not run
	etcd   *embed.Etcd  // the same
	id     types.ID     // set by the first start
	cut    bool
	killed kill // the latest
}

// maxSocketPath is the lowest limit of any OS on the path of a unix socket, in bytes.
const maxSocketPath = 103

func newMember(i int, run string, peers *peerTLS) (*member, error) {
	m := &member{name: fmt.Sprintf("member-%d", i), folder: filepath.Join(run, strconv.Itoa(i)), peers: peers}
	m.client = &socket{name: m.name, path: filepath.Join(m.folder, "client")}
	m.peer = &socket{name: m.name + " (peers)", path: filepath.Join(m.folder, "peer")}
	if len(m.client.path) > maxSocketPath {
		return nil, fmt.Errorf("the path of socket %s has more than %d bytes; set TMPDIR to a folder with a shorter path", m.client.path, maxSocketPath)
	}
	if err := os.Mkdir(m.folder, 0o700); err != nil {
		return nil, err
	}
	var err error
	if m.relay, err = listenRelay(m.peer, peers.server); err != nil {
		return nil, fmt.Errorf("port for the peers of %s: %w", m.name, err)
	}
	return m, nil
}

// peerURL is where the other members connect to this one.
func (m *member) peerURL() url.URL { return url.URL{Scheme: "https", Host: m.relay.address()} }

// start starts the server; it serves once a quorum of the cluster runs.
func (m *member) start(ctx context.Context, cfg Config, clientURL url.URL, initialCluster string) error {
	etcd := embed.NewConfig()
	etcd.Name = m.name
	etcd.Dir = filepath.Join(m.folder, "data")
	etcd.UnsafeNoFsync = true
	// etcd takes the client's socket from Path and the peer's from Host.
	etcd.ListenClientUrls = []url.URL{{Scheme: "unix", Path: m.client.path}}
	etcd.ListenPeerUrls = []url.URL{{Scheme: "unix", Host: m.peer.path}}
	etcd.AdvertiseClientUrls, etcd.AdvertisePeerUrls = []url.URL{clientURL}, []url.URL{m.peerURL()}
	etcd.InitialCluster = initialCluster
	etcd.PeerTLSInfo = m.peers.files // to connect; a peer socket has no TLS
	etcd.ElectionMs = uint(cfg.ElectionTimeout.Milliseconds())
	etcd.TickMs = etcd.ElectionMs / 10
	etcd.EnableGRPCGateway = false
	server, err := disk.Start(ctx, disk.Config{
		Etcd:    etcd,
		Serving: func() { m.client.setOpen(true) },
		Ending:  func() { m.client.setOpen(false) },
	})
	if err != nil {
		m.killed = kill{m.name, server.End(true)}
		return fmt.Errorf("%s: %w", m.name, err)
	}
	m.server, m.etcd, m.id = server, server.Etcd(), server.Etcd().Server.MemberID()
	m.peer.setOpen(!m.cut)
	// etcd leaves the permissions of its sockets to the umask.
	return errors.Join(os.Chmod(m.client.path, 0o600), os.Chmod(m.peer.path, 0o600))
}

// kill stops a running server in the background as if its process had been killed:
// connections break, leadership is not handed over. It returns the latest kill.
func (m *member) kill() kill {
	if m.etcd == nil {
		return m.killed
	}
	m.peer.setOpen(false)
	m.killed = kill{m.name, m.server.End(true)}
	m.server, m.etcd = nil, nil
	return m.killed
}

// kill is a kill of a member; the zero value is one that has long finished.
type kill struct {
	name string // the member's
	done <-chan struct{}
}

func (k kill) wait(ctx context.Context) error {
	if k.done == nil {
		return nil
	}
	return disk.AwaitEnd(ctx, k.done, k.name+" is still stopping")
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
