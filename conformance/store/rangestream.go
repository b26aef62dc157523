package store

import (
	"context"
	"fmt"

	"github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"snowglobe.test/conformance/engine"
)

const etcdRangeStream = "feature gate EtcdRangeStream; " + etcd3Watcher

var streamCases = []Case{
	{
		ID:      "rangestream/is-the-list",
		Promise: "The chunks of a range stream join up to the list, with its count and one revision.",
		Source:  etcdRangeStream,
		Test: func(ctx context.Context, t *T) {
			names := numbered(500)
			last := t.Fill(ctx, names...)
			got := t.Stream(ctx)
			t.Expect(t.names(got.Kvs)).To(gomega.Equal(names), "the keys of the stream")
			t.Expect(got.Count).To(gomega.BeEquivalentTo(len(names)), "the count that the stream tells")
			t.Expect(got.Header.GetRevision()).To(gomega.BeNumerically(">=", last),
				"the revision that the stream tells")
			t.Expect(string(got.Kvs[7].Value)).To(gomega.Equal("of 0007"), "the value of 0007")
		},
	},
	{
		ID:      "rangestream/empty-one-tells-the-revision",
		Promise: "A range stream of no keys tells the revision of the store.",
		Source:  etcdRangeStream, Failure: true,
		Test: func(ctx context.Context, t *T) {
			last := t.Create(ctx, "a", "1")
			t.Delete(ctx, "a", last)
			got := t.Stream(ctx)
			t.Expect(got.Kvs).To(gomega.BeEmpty(), "the keys of the stream")
			t.Expect(got.Header.GetRevision()).To(gomega.BeNumerically(">", last), "the revision that the stream tells")
		},
	},
	{
		ID: "rangestream/is-of-one-revision",
		Promise: "A range stream under load is the state at the revision that it tells, so that a watch from there " +
			"misses nothing.",
		Source: etcdRangeStream,
		Test: func(ctx context.Context, t *T) {
			t.Fill(ctx, numbered(200)...)
			var loading errgroup.Group
			loading.Go(func() error { return errorOf(t.tryLoad(ctx, 4, 50)) })
			var streams []*clientv3.GetResponse
			for range 10 {
				streams = append(streams, t.Stream(ctx))
			}
			t.Must(loading.Wait(), "write while streams are read")
			for _, got := range streams {
				revision := got.Header.GetRevision()
				want := t.List(ctx, "", revision)
				t.Expect(text(got.Kvs...)).To(gomega.Equal(text(want.Kvs...)),
					"the stream of revision %d, compared with a list at that revision", revision)
			}
		},
	},
	{
		ID: "rangestream/compacted-revision-is-refused",
		Promise: "A range stream at a revision that has been compacted ends with mvcc: required revision has been " +
			"compacted.",
		Source: etcdRangeStream, Failure: true, Needs: compacts,
		Test: func(ctx context.Context, t *T) {
			t.Stream(ctx) // skips the case if there are no range streams
			old := t.Create(ctx, "a", "1")
			compacted := t.Fill(ctx, "b", "c")
			t.Compact(ctx, compacted)
			_, err := t.tryStream(ctx, clientv3.WithRev(old))
			t.compactedAway(err, fmt.Sprintf("a range stream at revision %d, after a compaction at %d", old, compacted))
		},
	},
}

// Stream returns a range stream of the case's keys as one response. The case is skipped if
// the store has no range streams: API servers list then.
func (t *T) Stream(ctx context.Context, opts ...clientv3.OpOption) *clientv3.GetResponse {
	got, err := t.tryStream(ctx, opts...)
	if status.Code(err) == codes.Unimplemented {
		engine.Skip("the store has no range streams: %v", err)
	}
	t.Must(err, "read a range stream")
	return got
}

func (t *T) tryStream(ctx context.Context, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	chunks, err := t.Client.KV.GetStream(ctx, t.Prefix, append(opts, clientv3.WithPrefix())...)
	if err != nil {
		return nil, err
	}
	return clientv3.GetStreamToGetResponse(chunks)
}
