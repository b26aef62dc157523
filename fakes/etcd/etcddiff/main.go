// Command etcddiff runs random operations on an embedded etcd and on the
// in-memory one, in process and over gRPC, and compares every answer. At the first
// difference it stops and prints the seed that leads to it.
//
//	go run ./fakes/etcd/etcddiff -operations 5000000
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"snowglobe.test/fakes/etcd"
	"snowglobe.test/fakes/etcd/internal/differential"
	"snowglobe.test/fakes/etcd/internal/realetcd"
)

// reportEvery is how often progress is printed.
const reportEvery = 10 * time.Second

func main() {
	operations := flag.Int("operations", 1_000_000, "how many operations to do")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "seed of the first sequence; the next has the next")
	length := flag.Int("length", 2000, "operations of a sequence, each of which begins with empty stores")
	parallel := flag.Int("parallel", 8, "sequences at a time")
	flag.Parse()
	if *length < 1 || *parallel < 1 {
		fmt.Fprintln(os.Stderr, "etcddiff: -length and -parallel must be at least 1")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := compare(ctx, *operations, *seed, *length, *parallel); err != nil {
		fmt.Fprintln(os.Stderr, "etcddiff:", err)
		os.Exit(1)
	}
}

// compare runs sequences in parallel until that many operations are done.
func compare(ctx context.Context, operations int, seed uint64, length, parallel int) error {
	var done atomic.Int64
	began := time.Now()
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for reported := began; int(done.Load()) < operations && groupCtx.Err() == nil; seed++ {
		group.Go(func() error {
			n, err := sequence(groupCtx, differential.FromSeed(seed, length))
			done.Add(int64(n))
			if err != nil {
				return fmt.Errorf("-seed %d -length %d: %w", seed, length, err)
			}
			return nil
		})
		if time.Since(reported) > reportEvery {
			reported = time.Now()
			fmt.Printf("%d operations, no difference, %.0f/s\n", done.Load(), float64(done.Load())/time.Since(began).Seconds())
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	fmt.Printf("%d operations in %s, no difference\n", done.Load(), time.Since(began).Round(time.Second))
	return ctx.Err()
}

// sequence compares one sequence on stores of its own.
func sequence(ctx context.Context, src differential.Source) (n int, err error) {
	dir, err := os.MkdirTemp("", "e")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	real, err := realetcd.Start(dir)
	if err != nil {
		return 0, err
	}
	defer real.Close()
	realClient, err := real.Client()
	if err != nil {
		return 0, err
	}
	near, err := etcd.New(etcd.Config{})
	if err != nil {
		return 0, err
	}
	defer near.Close()
	far, err := etcd.New(etcd.Config{})
	if err != nil {
		return 0, err
	}
	defer far.Close()
	farClient, err := dial(far)
	if err != nil {
		return 0, err
	}
	defer farClient.Close()
	session := differential.NewSession(
		&differential.System{Name: "embedded", Client: realClient},
		&differential.System{Name: "in process", Client: near.Client().Client},
		&differential.System{Name: "gRPC", Client: farClient},
	)
	return session.Compare(ctx, src)
}

// dial serves s in memory and returns a client of it.
func dial(s *etcd.Server) (*clientv3.Client, error) {
	l := bufconn.Listen(64 << 10)
	go func() {
		if err := s.Serve(l); err != nil {
			fmt.Fprintln(os.Stderr, "etcddiff:", err)
		}
	}()
	return clientv3.New(clientv3.Config{
		Endpoints: []string{"passthrough:///memory"},
		Logger:    zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return l.DialContext(ctx)
		})},
	})
}
