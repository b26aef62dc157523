package etcd

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
)

// benchClients are the ways to an empty store that the benchmarks compare: both
// of the in-memory etcd, and an embedded etcd that does not fsync.
var benchClients = []struct {
	name string
	open func(b *testing.B) *kubernetes.Client
}{
	{"inprocess", func(b *testing.B) *kubernetes.Client { return newServer(b, Config{}).Client() }},
	{"grpc", func(b *testing.B) *kubernetes.Client { return dialSocket(b, newServer(b, Config{})) }},
	{"embedded", func(b *testing.B) *kubernetes.Client {
		c := &kubernetes.Client{Client: startReal(b)}
		c.Kubernetes = c
		return c
	}},
}

// benchLoads are what the benchmarks do with each client.
var benchLoads = []struct {
	name string
	// round is how many operations a client does in a row when clients take turns.
	round int
	// prepare readies a store and returns operation i.
	prepare func(b *testing.B, c *kubernetes.Client) func(i int)
}{
	{"put", 200, preparePut},
	{"optimistic", 200, prepareOptimisticPut},
	{"list100k", 1, prepareList},
	{"watch1000", 5, prepareWatch},
}

// BenchmarkClients measures each load with each client by itself.
func BenchmarkClients(b *testing.B) {
	for _, load := range benchLoads {
		for _, d := range benchClients {
			b.Run(load.name+"/client="+d.name, func(b *testing.B) {
				b.ReportAllocs()
				do := load.prepare(b, d.open(b))
				for i := 0; b.Loop(); i++ {
					do(i)
				}
			})
		}
	}
}

// BenchmarkRatios lets the clients take turns at each load, so that a busy moment
// of the machine affects all of them. It reports how many times as fast as the
// embedded etcd each client of the in-memory one is.
func BenchmarkRatios(b *testing.B) {
	for _, load := range benchLoads {
		b.Run(load.name, func(b *testing.B) {
			do := make([]func(int), len(benchClients))
			for d, client := range benchClients {
				do[d] = load.prepare(b, client.open(b))
			}
			spent := make([]time.Duration, len(benchClients))
			i := 0
			for b.Loop() {
				for d := range benchClients {
					began := time.Now()
					for n := range load.round {
						do[d](i + n)
					}
					spent[d] += time.Since(began)
				}
				i += load.round
			}
			b.ReportMetric(0, "ns/op") // of a turn of all clients, which says nothing
			embedded := spent[len(spent)-1]
			for d, client := range benchClients {
				b.ReportMetric(float64(spent[d].Nanoseconds())/float64(i), client.name+"-ns")
				if spent[d] != embedded {
					b.ReportMetric(float64(embedded)/float64(spent[d]), client.name+"-x-embedded")
				}
			}
		})
	}
}

func podKey(i int) string { return fmt.Sprintf("/registry/pods/ns/%06d", i) }

func preparePut(b *testing.B, c *kubernetes.Client) func(i int) {
	keys, value := podKeys(), string(make([]byte, 256))
	return func(i int) {
		_, err := c.Put(context.Background(), keys[i%len(keys)], value)
		require.NoError(b, err)
	}
}

func prepareOptimisticPut(b *testing.B, c *kubernetes.Client) func(i int) {
	keys, value := podKeys(), make([]byte, 256)
	revs := make([]int64, len(keys))
	return func(i int) {
		n := i % len(keys)
		resp, err := c.Kubernetes.OptimisticPut(context.Background(), keys[n], value, revs[n], kubernetes.PutOptions{GetOnFailure: true})
		if err != nil || !resp.Succeeded {
			b.Fatal(resp, err)
		}
		revs[n] = resp.Revision
	}
}

// podKeys returns ten thousand keys.
func podKeys() []string {
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = podKey(i)
	}
	return keys
}

func prepareList(b *testing.B, c *kubernetes.Client) func(i int) {
	fill(b, c, 100_000)
	return func(int) {
		resp, err := c.Kubernetes.List(context.Background(), "/registry/pods/", kubernetes.ListOptions{})
		if err != nil || len(resp.Kvs) != 100_000 {
			b.Fatal(len(resp.Kvs), err)
		}
	}
}

// fill puts n keys.
func fill(b *testing.B, c *kubernetes.Client, n int) {
	b.Helper()
	value := string(make([]byte, 256))
	var group sync.WaitGroup
	const writers = 16
	for w := range writers {
		group.Go(func() {
			for i := w; i < n; i += writers {
				if _, err := c.Put(context.Background(), podKey(i), value); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}

// prepareWatch has 1000 watchers wait for each put.
func prepareWatch(b *testing.B, c *kubernetes.Client) func(i int) {
	const watchers = 1000
	ctx, cancel := context.WithCancel(context.Background())
	var created, seen, ended sync.WaitGroup
	created.Add(watchers)
	for range watchers {
		ch := c.Watch(ctx, "/registry/pods/", clientv3.WithPrefix(), clientv3.WithPrevKV(), clientv3.WithCreatedNotify())
		ended.Go(func() {
			for resp := range ch {
				if resp.Created {
					created.Done()
				}
				for range resp.Events {
					seen.Done()
				}
			}
		})
	}
	b.Cleanup(func() {
		cancel()
		ended.Wait()
	})
	created.Wait()
	value := string(make([]byte, 256))
	return func(i int) {
		seen.Add(watchers)
		_, err := c.Put(ctx, podKey(i%100), value)
		require.NoError(b, err)
		seen.Wait()
	}
}

// BenchmarkSnapshot takes snapshots of a million keys, with a put in between
// so that none is the one before. ns/op is of both, with the two looks at the
// clock that tell them apart: ns/snapshot is what a snapshot alone takes, and
// ns/put what the put takes, which copies what it no longer shares.
func BenchmarkSnapshot(b *testing.B) {
	const keys = 1_000_000
	s := newServer(b, Config{})
	c := s.Client()
	fill(b, c, keys)
	var snapshots, puts time.Duration
	for i := 0; b.Loop(); i++ {
		began := time.Now()
		s.Snapshot()
		taken := time.Now()
		_, err := c.Put(context.Background(), podKey(i*7919%keys), "")
		require.NoError(b, err)
		snapshots += taken.Sub(began)
		puts += time.Since(taken)
	}
	b.ReportMetric(float64(snapshots.Nanoseconds())/float64(b.N), "ns/snapshot")
	b.ReportMetric(float64(puts.Nanoseconds())/float64(b.N), "ns/put")
}

// BenchmarkRewind undoes 1,000 writes among 10,000 keys.
func BenchmarkRewind(b *testing.B) {
	s := newServer(b, Config{})
	c := s.Client()
	fill(b, c, 10_000)
	snapshot := s.Snapshot()
	for b.Loop() {
		b.StopTimer()
		for i := range 1000 {
			_, err := c.Put(context.Background(), podKey(i), "changed")
			require.NoError(b, err)
		}
		b.StartTimer()
		_, err := s.Rewind(snapshot, nil)
		require.NoError(b, err)
	}
}
