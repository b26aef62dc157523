package etcd

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"google.golang.org/grpc"

	"snowglobe.test/fakes/etcd/internal/keyspace"
)

// Config configures a Server. The zero value is a stock etcd.
type Config struct {
	// MaxRequestBytes is the largest write request, in bytes of its encoding;
	// a larger one fails with "request is too large". 0 means etcd's 1.5 MiB.
	MaxRequestBytes int

	// MaxTxnOps is the largest number of compares, or of operations in one
	// branch, of a transaction. 0 means etcd's 128.
	MaxTxnOps int

	// MinLeaseTTL is the shortest time-to-live in seconds a lease is granted;
	// shorter requests are raised to it. 0 means etcd's 2.
	MinLeaseTTL int64

	// WatchBuffer is how many responses a watch (in process) or a watch stream
	// (over gRPC) may have unread; a write to many watches of a stream counts
	// once. A watch further behind holds one more; when its reader continues, it
	// is fed from history, up to 1000 revisions at a time, or cancelled with the
	// compact revision if its position has been compacted. 0 means etcd's 128.
	WatchBuffer int

	// ProgressNotifyInterval is how long a watch with progress notification
	// stays silent before it is sent the current revision. 0 means etcd's 10
	// minutes; less than 100 milliseconds is raised to that, as in etcd.
	ProgressNotifyInterval time.Duration

	// QuotaBytes is how large the store may become, in bytes of its keys and values; a write for
	// which there is no room raises the alarm NOSPACE and fails with "database space exceeded".
	// 0 means etcd's 2 GiB, and a negative value no quota.
	QuotaBytes int64

	// Name, PeerURLs and ClientURLs are what the member list says. Empty means "default",
	// http://localhost:2380 and Endpoint.
	Name                 string
	PeerURLs, ClientURLs []string

	// HTTP answers requests over HTTP/1 for paths that Serve's own answers don't have, such as
	// those of a JSON gateway. Nil means 404.
	HTTP http.Handler

	// ServerOptions are further options of the gRPC servers of Serve.
	ServerOptions []grpc.ServerOption

	// Endpoint is what in-process clients report, and the client URL in the
	// member list. It should differ between servers of a process, because
	// Kubernetes keeps one compactor per endpoint. Empty means a unique name.
	Endpoint string
}

// validate says what is wrong with c.
func (c Config) validate() error {
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"MaxRequestBytes", int64(c.MaxRequestBytes)},
		{"MaxTxnOps", int64(c.MaxTxnOps)},
		{"MinLeaseTTL", c.MinLeaseTTL},
		{"WatchBuffer", int64(c.WatchBuffer)},
		{"ProgressNotifyInterval", int64(c.ProgressNotifyInterval)},
	} {
		if f.value < 0 {
			return fmt.Errorf("etcd config: %s is %d; give a positive value, or 0 for etcd's default", f.name, f.value)
		}
	}
	if c.MinLeaseTTL > keyspace.MaxLeaseTTL {
		const longest int64 = keyspace.MaxLeaseTTL
		return fmt.Errorf("etcd config: MinLeaseTTL is %d; the longest lease is %d seconds", c.MinLeaseTTL, longest)
	}
	return nil
}

// withDefaults returns c with every zero value replaced by that of a stock etcd.
func (c Config) withDefaults() Config {
	c.MaxRequestBytes = cmp.Or(c.MaxRequestBytes, 1.5*1024*1024)
	c.MaxTxnOps = cmp.Or(c.MaxTxnOps, 128)
	c.MinLeaseTTL = cmp.Or(c.MinLeaseTTL, 2)
	c.QuotaBytes = cmp.Or(c.QuotaBytes, 2*1024*1024*1024)
	c.Name = cmp.Or(c.Name, "default")
	if len(c.PeerURLs) == 0 {
		c.PeerURLs = []string{"http://localhost:2380"}
	}
	c.WatchBuffer = cmp.Or(c.WatchBuffer, 128)
	c.ProgressNotifyInterval = cmp.Or(c.ProgressNotifyInterval, 10*time.Minute)
	c.ProgressNotifyInterval = max(c.ProgressNotifyInterval, 100*time.Millisecond)
	return c
}
