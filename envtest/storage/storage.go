// Package storage owns what a control plane needs from etcd: a client for the REST
// storage of every server in the chain, and endpoints for the few upstream callers
// that dial for themselves. Its sub-packages are the kinds of store: memory,
// embedded, cluster and external. It never looks at what is stored.
package storage

import (
	"context"
	"net"

	"go.etcd.io/etcd/client/v3/kubernetes"
)

// Dialer opens a connection to an endpoint of a store.
type Dialer func(ctx context.Context, network, address string) (net.Conn, error)

// Endpoints tells callers with their own etcd client how to reach a store: by URLs,
// and a dialer (nil for the operating system's) or TLS files (empty for plain text).
type Endpoints struct {
	URLs     []string
	Dial     Dialer
	CertFile string
	KeyFile  string
	CAFile   string
}

// Backend is one store. A Backend serves one or more control planes, and is
// started before the first and stopped after the last.
type Backend interface {
	// Start makes the store ready. An error names the store and says what to do.
	Start(ctx context.Context) error
	// Client returns a client of the started store. All REST storage of one
	// control plane shares one client. The caller closes it.
	Client() (*kubernetes.Client, error)
	// Endpoints returns the addresses of the started store.
	Endpoints() Endpoints
	// Stop releases everything Start took. It is safe after a failed Start, and again.
	Stop(ctx context.Context) error
	// String names the store for people: "memory", "embedded DIR", ...
	String() string
}

// Failer is a Backend that may fail for good while it runs, as when its disk is full.
type Failer interface {
	// Failed returns a channel of the started store that is closed when it has failed.
	Failed() <-chan struct{}
	// Failure says why, after that.
	Failure() error
}

// LeaderLoser is a Backend that can be made to lose its leader.
type LeaderLoser interface {
	// LoseLeader deposes the current leader and returns once there is another one.
	LoseLeader(ctx context.Context) error
}
