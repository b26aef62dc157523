// Package realetcd starts an embedded etcd for the tests and measurements that
// compare the in-memory one with it. It never outlives the Etcd that owns it
// and keeps its files in the folder it is given.
package realetcd

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// startTimeout bounds the election of the only member.
const startTimeout = 30 * time.Second

// Etcd is a running etcd with one member.
type Etcd struct {
	server   *embed.Etcd
	endpoint string
	clients  []*clientv3.Client
}

// Start starts an etcd in the empty folder dir, which must have a short path
// because it holds the sockets. It does not fsync.
func Start(dir string) (*Etcd, error) {
	peer := url.URL{Scheme: "unix", Path: filepath.Join(dir, "peer")}
	client := url.URL{Scheme: "unix", Path: filepath.Join(dir, "client")}
	cfg := embed.NewConfig()
	cfg.Dir = filepath.Join(dir, "data")
	// etcd takes the peer's socket from Host. Without one it would be abstract, where any
	// user of the machine can connect.
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{{Scheme: "unix", Host: peer.Path}}, []url.URL{peer}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.UnsafeNoFsync = true
	cfg.LogLevel = "panic"
	server, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, fmt.Errorf("start embedded etcd in %s: %w", dir, err)
	}
	select {
	case <-server.Server.ReadyNotify():
	case err := <-server.Err():
		server.Close()
		return nil, fmt.Errorf("start embedded etcd in %s: %w", dir, err)
	case <-time.After(startTimeout):
		server.Close()
		return nil, fmt.Errorf("start embedded etcd in %s: no leader after %s", dir, startTimeout)
	}
	// etcd makes its sockets by the umask.
	if err := errors.Join(os.Chmod(client.Path, 0o600), os.Chmod(peer.Path, 0o600)); err != nil {
		server.Close()
		return nil, fmt.Errorf("start embedded etcd in %s: %w", dir, err)
	}
	return &Etcd{server: server, endpoint: client.String()}, nil
}

// Client returns a new client that Close closes.
func (e *Etcd) Client() (*clientv3.Client, error) {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{e.endpoint}, Logger: zap.NewNop()})
	if err != nil {
		return nil, fmt.Errorf("dial embedded etcd: %w", err)
	}
	e.clients = append(e.clients, c)
	return c, nil
}

// Close stops the etcd.
func (e *Etcd) Close() {
	for _, c := range e.clients {
		_ = c.Close()
	}
	e.server.Close()
}
