package etcd

import (
	"context"
	"fmt"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
)

// doors are the ways to an empty store that the benchmarks compare.
var doors = []struct {
	name string
	open func(b *testing.B) *kubernetes.Client
}{
	{"inprocess", func(b *testing.B) *kubernetes.Client { return newServer(b, Config{}).Client() }},
	{"grpc", func(b *testing.B) *kubernetes.Client { return dial(b, newServer(b, Config{})) }},
	{"embedded", func(b *testing.B) *kubernetes.Client {
		c := &kubernetes.Client{Client: startReal(b)}
		c.Kubernetes = c
		return c
	}},
}

func eachBenchDoor(b *testing.B, bench func(b *testing.B, c *kubernetes.Client)) {
	for _, d := range doors {
		b.Run("door="+d.name, func(b *testing.B) {
			b.ReportAllocs()
			bench(b, d.open(b))
		})
	}
}

func BenchmarkPut(b *testing.B) {
	value := string(make([]byte, 256))
	eachBenchDoor(b, func(b *testing.B, c *kubernetes.Client) {
		ctx := context.Background()
		for i := 0; b.Loop(); i++ {
			if _, err := c.Put(ctx, fmt.Sprintf("/registry/pods/ns/%06d", i%10000), value); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkOptimisticPut(b *testing.B) {
	value := make([]byte, 256)
	eachBenchDoor(b, func(b *testing.B, c *kubernetes.Client) {
		ctx := context.Background()
		keys, revs := make([]string, 10000), make([]int64, 10000)
		for i := range keys {
			keys[i] = fmt.Sprintf("/registry/pods/ns/%06d", i)
		}
		for i := 0; b.Loop(); i++ {
			n := i % len(keys)
			resp, err := c.Kubernetes.OptimisticPut(ctx, keys[n], value, revs[n], kubernetes.PutOptions{GetOnFailure: true})
			if err != nil || !resp.Succeeded {
				b.Fatal(resp, err)
			}
			revs[n] = resp.Revision
		}
	})
}

func BenchmarkList100k(b *testing.B) {
	eachBenchDoor(b, func(b *testing.B, c *kubernetes.Client) {
		ctx := context.Background()
		fill(b, c, 100_000)
		for b.Loop() {
			resp, err := c.Kubernetes.List(ctx, "/registry/pods/", kubernetes.ListOptions{})
			if err != nil || len(resp.Kvs) != 100_000 {
				b.Fatal(len(resp.Kvs), err)
			}
		}
	})
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
				if _, err := c.Put(context.Background(), fmt.Sprintf("/registry/pods/ns/%06d", i), value); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}

// BenchmarkWatch1000 measures a put that 1000 watchers wait for.
func BenchmarkWatch1000(b *testing.B) {
	const watchers = 1000
	eachBenchDoor(b, func(b *testing.B, c *kubernetes.Client) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var seen, ended sync.WaitGroup
		for range watchers {
			ch := c.Watch(ctx, "/registry/pods/", clientv3.WithPrefix(), clientv3.WithPrevKV())
			ended.Go(func() {
				for resp := range ch {
					for range resp.Events {
						seen.Done()
					}
				}
			})
		}
		value := string(make([]byte, 256))
		for i := 0; b.Loop(); i++ {
			seen.Add(watchers)
			if _, err := c.Put(ctx, fmt.Sprintf("/registry/pods/ns/%06d", i%100), value); err != nil {
				b.Fatal(err)
			}
			seen.Wait()
		}
		b.ReportMetric(float64(b.N)*watchers/b.Elapsed().Seconds(), "events/s")
		cancel()
		ended.Wait()
	})
}

// BenchmarkSnapshot takes snapshots of a million keys, with a write in between
// so that none is the one before.
func BenchmarkSnapshot(b *testing.B) {
	s := newServer(b, Config{})
	c := s.Client()
	fill(b, c, 1_000_000)
	// Stopping the clock for the write would take longer than both, so its
	// time is in here too.
	for b.Loop() {
		s.Snapshot()
		if _, err := c.Put(context.Background(), "/registry/pods/ns/000000", ""); err != nil {
			b.Fatal(err)
		}
	}
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
			if _, err := c.Put(context.Background(), fmt.Sprintf("/registry/pods/ns/%06d", i), "changed"); err != nil {
				b.Fatal(err)
			}
		}
		b.StartTimer()
		if _, err := s.Rewind(snapshot); err != nil {
			b.Fatal(err)
		}
	}
}
