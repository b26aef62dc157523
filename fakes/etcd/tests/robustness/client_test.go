package robustness

import (
	"context"
	"net"
	"reflect"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/tests/v3/robustness/client"
	"go.etcd.io/etcd/tests/v3/robustness/identity"
	"go.etcd.io/etcd/tests/v3/robustness/report"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"snowglobe.test/fakes/etcd"
)

// dialer makes clients of a store.
type dialer func(t *testing.T) *clientv3.Client

// newServer returns a store that sends progress as often as etcd allows.
func newServer(t *testing.T) *etcd.Server {
	t.Helper()
	s, err := etcd.New(etcd.Config{ProgressNotifyInterval: 100 * time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// inProcess makes in-process clients.
func inProcess(s *etcd.Server) dialer {
	return func(*testing.T) *clientv3.Client { return s.Client().Client }
}

// overGRPC makes gRPC clients, on connections in memory.
func overGRPC(t *testing.T, s *etcd.Server) dialer {
	t.Helper()
	l := bufconn.Listen(1 << 20)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		_ = s.Close()
		require.NoError(t, <-served)
	})
	return func(t *testing.T) *clientv3.Client {
		c, err := clientv3.New(clientv3.Config{
			Endpoints: []string{"passthrough:///memory"},
			Logger:    zap.NewNop(),
			DialOptions: []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				return l.DialContext(ctx)
			})},
		})
		require.NoError(t, err)
		return c
	}
}

// recorders makes clients that record their requests and responses.
type recorders struct {
	open     dialer
	ids      identity.Provider
	baseTime time.Time
	all      []*client.RecordingClient
}

func newRecorders(open dialer) *recorders {
	return &recorders{open: open, ids: identity.NewIDProvider(), baseTime: time.Now()}
}

// client returns a new client. Upstream's can only dial an address, so its inner
// client is replaced by one of ours.
func (r *recorders) client(t *testing.T) *client.RecordingClient {
	t.Helper()
	c, err := client.NewRecordingClient([]string{"passthrough:///unused"}, r.ids, r.baseTime)
	require.NoError(t, err)
	field := reflect.ValueOf(c).Elem().FieldByName("client")
	require.True(t, field.IsValid(), "upstream's recording client has no field client any more")
	inner := reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Interface().(**clientv3.Client)
	require.NoError(t, (*inner).Close())
	*inner = r.open(t)
	r.all = append(r.all, c)
	return c
}

// reports closes the clients and returns what they recorded.
func (r *recorders) reports() []report.ClientReport {
	var list []report.ClientReport
	for _, c := range r.all {
		_ = c.Close() // a client without a connection says context.Canceled
		list = append(list, c.Report())
	}
	return list
}
