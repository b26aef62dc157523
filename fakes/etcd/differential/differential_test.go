package differential

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"snowglobe.test/fakes/etcd"
	"snowglobe.test/fakes/etcd/internal/realetcd"
)

var (
	operations = flag.Int("operations", 1000, "how many operations TestSequences does")
	firstSeed  = flag.Uint64("seed", 5, "seed of its first sequence; the next has the next")
	length     = flag.Int("length", 500, "operations of a sequence, each of which begins with empty stores")
	parallel   = flag.Int("parallel", 2, "sequences at a time")
)

// reportEvery is how often a long run prints its progress.
const reportEvery = 10 * time.Second

// stores are the systems of one session, and what ends them, last first.
type stores struct {
	session *Session
	ends    []func()
}

// open starts an embedded etcd and two in-memory ones, one used in process and one
// over gRPC.
func open() (_ *stores, err error) {
	s := &stores{}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	dir, err := os.MkdirTemp("", "e") // short enough for sockets
	if err != nil {
		return nil, err
	}
	s.ends = append(s.ends, func() { _ = os.RemoveAll(dir) })
	real, err := realetcd.Start(dir)
	if err != nil {
		return nil, err
	}
	s.ends = append(s.ends, real.Close)
	embedded, err := real.Client()
	if err != nil {
		return nil, err
	}
	near, err := s.memory()
	if err != nil {
		return nil, err
	}
	far, err := s.memory()
	if err != nil {
		return nil, err
	}
	remote, err := s.dial(far)
	if err != nil {
		return nil, err
	}
	s.session = NewSession(
		&System{Name: "embedded", Client: embedded},
		&System{Name: "in process", Client: near.Client().Client},
		&System{Name: "gRPC", Client: remote},
	)
	return s, nil
}

func (s *stores) memory() (*etcd.Server, error) {
	server, err := etcd.New(etcd.Config{})
	if err == nil {
		s.ends = append(s.ends, func() { _ = server.Close() })
	}
	return server, err
}

// dial has a server listen in memory, and returns a client of it.
func (s *stores) dial(server *etcd.Server) (*clientv3.Client, error) {
	l := bufconn.Listen(64 << 10)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	s.ends = append(s.ends, func() {
		_ = server.Close()
		if err := <-served; err != nil {
			panic(err)
		}
	})
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"passthrough:///memory"},
		Logger:    zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return l.DialContext(ctx)
		})},
	})
	if err == nil {
		s.ends = append(s.ends, func() { _ = client.Close() })
	}
	return client, err
}

func (s *stores) close() {
	for len(s.ends) > 0 {
		last := len(s.ends) - 1
		s.ends[last]()
		s.ends = s.ends[:last]
	}
}

// newSession returns a session that ends with the test.
func newSession(t testing.TB) *Session {
	t.Helper()
	s, err := open()
	require.NoError(t, err)
	t.Cleanup(s.close)
	return s.session
}

// Sequences on the same stores, one after another.
func TestDifferential(t *testing.T) {
	session := newSession(t)
	for seed := range uint64(5) {
		n, err := session.Compare(t.Context(), FromSeed(seed, 400))
		require.NoError(t, err, "seed %d, after %d operations", seed, n)
	}
}

// TestSequences runs sequences on stores of their own until that many operations are
// done. At the first difference it stops, and names the seed that leads to it.
func TestSequences(t *testing.T) {
	require.GreaterOrEqual(t, *length, 1, "-length and -parallel must be at least 1")
	require.GreaterOrEqual(t, *parallel, 1, "-length and -parallel must be at least 1")
	var done atomic.Int64
	began := time.Now()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(*parallel)
	seed := *firstSeed
	for reported := began; int(done.Load()) < *operations && ctx.Err() == nil; seed++ {
		of := seed
		group.Go(func() error {
			n, err := sequence(ctx, of)
			done.Add(int64(n))
			return err
		})
		if time.Since(reported) > reportEvery {
			reported = time.Now()
			t.Logf("%d operations, no difference, %.0f/s", done.Load(), float64(done.Load())/time.Since(began).Seconds())
		}
	}
	require.NoError(t, group.Wait())
	t.Logf("%d operations in %s, no difference", done.Load(), time.Since(began).Round(time.Second))
}

// sequence compares one sequence.
func sequence(ctx context.Context, seed uint64) (int, error) {
	s, err := open()
	if err != nil {
		return 0, err
	}
	defer s.close()
	n, err := s.session.Compare(ctx, FromSeed(seed, *length))
	if err != nil && !errors.Is(err, context.Canceled) {
		err = fmt.Errorf("-seed %d -length %d: %w", seed, *length, err)
	}
	return n, err
}

// bytesSource reads its choices from data.
type bytesSource struct{ data []byte }

// Choose implements Source.
func (b *bytesSource) Choose(n int) int {
	if len(b.data) == 0 {
		return 0
	}
	c := int(b.data[0])
	b.data = b.data[1:]
	return c % n
}

// Done implements Source.
func (b *bytesSource) Done() bool { return len(b.data) == 0 }

func FuzzDifferential(f *testing.F) {
	session := newSession(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := session.Compare(t.Context(), &bytesSource{data})
		require.NoError(t, err, "after %d operations", n)
	})
}
