package etcd

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"snowglobe.test/fakes/etcd/internal/keyspace"
)

// put puts a key and returns the revision.
func put(t testing.TB, c *kubernetes.Client, key, value string, opts ...clientv3.OpOption) int64 {
	t.Helper()
	resp, err := c.Put(context.Background(), key, value, opts...)
	require.NoError(t, err, "put %q", key)
	return resp.Header.Revision
}

// del deletes a key and returns the revision.
func del(t testing.TB, c *kubernetes.Client, key string, opts ...clientv3.OpOption) int64 {
	t.Helper()
	resp, err := c.Delete(context.Background(), key, opts...)
	require.NoError(t, err, "delete %q", key)
	return resp.Header.Revision
}

// brief returns keys and values as key=value@create/mod/version.
func brief(kvs []*mvccpb.KeyValue) string {
	var list []string
	for _, kv := range kvs {
		list = append(list, fmt.Sprintf("%s=%s@%d/%d/%d", kv.Key, kv.Value, kv.CreateRevision, kv.ModRevision, kv.Version))
	}
	return strings.Join(list, " ")
}

func TestRangeOptions(t *testing.T) {
	type result struct {
		Kvs   string
		More  bool
		Count int64
	}
	tests := []struct {
		name string
		key  string
		opts []clientv3.OpOption
		want result
	}{
		{"one key", "b", nil, result{"b=9@3/5/2", false, 1}},
		{"missing key", "x", nil, result{"", false, 0}},
		{"deleted key", "d", nil, result{"", false, 0}},
		{"half open", "a", []clientv3.OpOption{clientv3.WithRange("c")}, result{"a=3@2/2/1 b=9@3/5/2", false, 2}},
		{"prefix", "c", []clientv3.OpOption{clientv3.WithPrefix()}, result{"c=1@4/4/1 cc=2@8/8/1", false, 2}},
		{"from key", "b", []clientv3.OpOption{clientv3.WithFromKey()}, result{"b=9@3/5/2 c=1@4/4/1 cc=2@8/8/1", false, 3}},
		{"empty range", "c", []clientv3.OpOption{clientv3.WithRange("a")}, result{"", false, 0}},
		{"old revision", "b", []clientv3.OpOption{clientv3.WithRev(4)}, result{"b=2@3/3/1", false, 1}},
		{"before creation", "b", []clientv3.OpOption{clientv3.WithRev(2)}, result{"", false, 0}},
		{"before deletion", "d", []clientv3.OpOption{clientv3.WithRev(6)}, result{"d=x@6/6/1", false, 1}},
		{"limit", "a", []clientv3.OpOption{clientv3.WithFromKey(), clientv3.WithLimit(2)},
			result{"a=3@2/2/1 b=9@3/5/2", true, 4}},
		{"limit not reached", "a", []clientv3.OpOption{clientv3.WithFromKey(), clientv3.WithLimit(4)},
			result{"a=3@2/2/1 b=9@3/5/2 c=1@4/4/1 cc=2@8/8/1", false, 4}},
		{"keys only", "a", []clientv3.OpOption{clientv3.WithKeysOnly()}, result{"a=@2/2/1", false, 1}},
		{"count only", "a", []clientv3.OpOption{clientv3.WithFromKey(), clientv3.WithCountOnly()}, result{"", false, 4}},
		{"serializable", "a", []clientv3.OpOption{clientv3.WithSerializable()}, result{"a=3@2/2/1", false, 1}},
		{"descending", "a", []clientv3.OpOption{clientv3.WithFromKey(), clientv3.WithSort(clientv3.SortByKey, clientv3.SortDescend)},
			result{"cc=2@8/8/1 c=1@4/4/1 b=9@3/5/2 a=3@2/2/1", false, 4}},
		{"by value", "a", []clientv3.OpOption{clientv3.WithFromKey(), clientv3.WithSort(clientv3.SortByValue, clientv3.SortAscend)},
			result{"c=1@4/4/1 cc=2@8/8/1 a=3@2/2/1 b=9@3/5/2", false, 4}},
		{"by value, keys only", "a", []clientv3.OpOption{clientv3.WithFromKey(), clientv3.WithKeysOnly(), clientv3.WithSort(clientv3.SortByValue, clientv3.SortAscend)},
			result{"c=@4/4/1 cc=@8/8/1 a=@2/2/1 b=@3/5/2", false, 4}},
		{"last modified of a prefix", "c", clientv3.WithLastRev(), result{"cc=2@8/8/1", true, 2}},
		{"by version", "a", []clientv3.OpOption{clientv3.WithFromKey(), clientv3.WithSort(clientv3.SortByVersion, clientv3.SortDescend), clientv3.WithLimit(1)},
			result{"b=9@3/5/2", true, 4}},
		{"by creation", "a", []clientv3.OpOption{clientv3.WithFromKey(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortDescend)},
			result{"cc=2@8/8/1 c=1@4/4/1 b=9@3/5/2 a=3@2/2/1", false, 4}},
		{"modified since", "a", []clientv3.OpOption{clientv3.WithFromKey(), clientv3.WithMinModRev(4)},
			result{"b=9@3/5/2 c=1@4/4/1 cc=2@8/8/1", false, 4}},
		{"modified until", "a", []clientv3.OpOption{clientv3.WithFromKey(), clientv3.WithMaxModRev(4)},
			result{"a=3@2/2/1 c=1@4/4/1", false, 4}},
		{"created since, limited", "a", []clientv3.OpOption{clientv3.WithFromKey(), clientv3.WithMinCreateRev(3), clientv3.WithLimit(2)},
			result{"b=9@3/5/2 c=1@4/4/1", true, 4}},
		{"created until", "a", []clientv3.OpOption{clientv3.WithFromKey(), clientv3.WithMaxCreateRev(3)},
			result{"a=3@2/2/1 b=9@3/5/2", false, 4}},
	}
	eachClient(t, Config{}, func(t *testing.T, s *Server, c *kubernetes.Client) {
		for _, kv := range []string{"a=3", "b=2", "c=1", "b=9", "d=x"} {
			key, value, _ := strings.Cut(kv, "=")
			put(t, c, key, value)
		}
		del(t, c, "d")
		put(t, c, "cc", "2")
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				resp, err := c.KV.Get(context.Background(), tt.key, tt.opts...)
				require.NoError(t, err)
				got := result{brief(resp.Kvs), resp.More, resp.Count}
				assert.Empty(t, cmp.Diff(tt.want, got), "-want +got")
				h := resp.Header
				assert.Equal(t, int64(8), h.Revision, "header %v", h)
				assert.NotEqual(t, uint64(0), h.ClusterId, "header %v", h)
				assert.NotEqual(t, uint64(0), h.MemberId, "header %v", h)
				assert.NotEqual(t, uint64(0), h.RaftTerm, "header %v", h)
			})
		}
	})
}

func TestRangeErrors(t *testing.T) {
	eachClient(t, Config{}, func(t *testing.T, s *Server, c *kubernetes.Client) {
		for i := range 6 {
			put(t, c, "a", fmt.Sprint(i))
		}
		ctx := context.Background()
		_, err := c.Compact(ctx, 4)
		require.NoError(t, err)
		for _, tt := range []struct {
			name string
			key  string
			opts []clientv3.OpOption
			want error
		}{
			{"future", "a", []clientv3.OpOption{clientv3.WithRev(8)}, rpctypes.ErrFutureRev},
			{"compacted", "a", []clientv3.OpOption{clientv3.WithRev(3)}, rpctypes.ErrCompacted},
			{"empty key", "", nil, rpctypes.ErrEmptyKey},
			{"sort option", "a", []clientv3.OpOption{clientv3.WithSort(99, clientv3.SortAscend)}, rpctypes.ErrInvalidSortOption},
		} {
			_, err := c.KV.Get(ctx, tt.key, tt.opts...)
			assert.ErrorIs(t, err, tt.want, "%s", tt.name)
		}
		resp, err := c.KV.Get(ctx, "a", clientv3.WithRev(4))
		assert.False(t, err != nil || brief(resp.Kvs) != "a=2@2/4/3", "at the compact revision: %v, %v", resp, err)
		_, err = c.Compact(ctx, 4)
		assert.ErrorIs(t, err, rpctypes.ErrCompacted, "compact again")
		_, err = c.Compact(ctx, 99)
		assert.ErrorIs(t, err, rpctypes.ErrFutureRev, "compact the future")
		cancelled, cancel := context.WithCancel(ctx)
		cancel()
		_, err = c.KV.Get(cancelled, "a")
		assert.ErrorIs(t, err, context.Canceled, "cancelled")
	})
}

// TestLongRangeIsOneMoment reads more keys than are read under the lock while
// writers write: all of them have to be of one revision.
func TestLongRangeIsOneMoment(t *testing.T) {
	s := newServer(t, Config{})
	c := s.Client()
	ctx := context.Background()
	const keys = 3 * keyspace.LockedScanKeys
	for i := range keys {
		put(t, c, fmt.Sprintf("k/%05d", i), "0")
	}
	stop := make(chan struct{})
	writer := make(chan error, 1)
	go func() {
		for round := 0; ; round++ {
			select {
			case <-stop:
				writer <- nil
				return
			default:
			}
			// The first and the last key always change together.
			value := fmt.Sprint(round)
			_, err := c.Txn(ctx).Then(clientv3.OpPut("k/00000", value), clientv3.OpPut(fmt.Sprintf("k/%05d", keys-1), value)).Commit()
			if err != nil {
				writer <- err
				return
			}
		}
	}()
	for range 200 {
		resp, err := c.Kubernetes.List(ctx, "k/", kubernetes.ListOptions{})
		require.NoError(t, err)
		first, last := resp.Kvs[0], resp.Kvs[len(resp.Kvs)-1]
		require.Len(t, resp.Kvs, keys, "%d keys, first %v, last %v, revision %d", len(resp.Kvs), first, last, resp.Revision)
		require.Equal(t, string(last.Value), string(first.Value), "%d keys, first %v, last %v, revision %d", len(resp.Kvs), first, last, resp.Revision)
		require.LessOrEqual(t, first.ModRevision, resp.Revision, "%d keys, first %v, last %v, revision %d", len(resp.Kvs), first, last, resp.Revision)
	}
	close(stop)
	require.NoError(t, <-writer)
}

func TestGetStream(t *testing.T) {
	eachClient(t, Config{MaxRequestBytes: 4096}, func(t *testing.T, s *Server, c *kubernetes.Client) {
		ctx := context.Background()
		const keys = 2500
		for i := range keys {
			put(t, c, fmt.Sprintf("k/%05d", i), strings.Repeat("v", 100))
		}
		rev := s.Revision()
		put(t, c, "k/later", "v")

		read := func(opts ...clientv3.OpOption) (chunks []clientv3.RangeStreamResponse) {
			t.Helper()
			ch, err := c.GetStream(ctx, "k/", append(opts, clientv3.WithPrefix())...)
			require.NoError(t, err)
			for r := range ch {
				chunks = append(chunks, r)
			}
			return chunks
		}
		chunks := read(clientv3.WithRev(rev))
		got := 0
		for i, r := range chunks {
			require.NoError(t, r.Err())
			last := i == len(chunks)-1
			assert.Equal(t, last, r.Header != nil, "chunk %d of %d has header %v and count %d", i, len(chunks), r.Header, r.Count)
			assert.Equal(t, last, r.Count != 0, "chunk %d of %d has header %v and count %d", i, len(chunks), r.Header, r.Count)
			got += len(r.Kvs)
		}
		last := chunks[len(chunks)-1]
		assert.Equal(t, keys, got, "%d keys in %d chunks, count %d, revision %v", got, len(chunks), last.Count, last.Header)
		assert.GreaterOrEqual(t, len(chunks), 3, "%d keys in %d chunks, count %d, revision %v", got, len(chunks), last.Count, last.Header)
		assert.Equal(t, int64(keys), last.Count, "%d keys in %d chunks, count %d, revision %v", got, len(chunks), last.Count, last.Header)
		assert.Equal(t, rev+1, last.Header.Revision, "%d keys in %d chunks, count %d, revision %v", got, len(chunks), last.Count, last.Header)
		chunks = read(clientv3.WithLimit(5))
		assert.False(t, len(chunks) != 1 || len(chunks[0].Kvs) != 5 || !chunks[0].More || chunks[0].Count != keys+1, "limited: %d chunks", len(chunks))

		for _, tt := range []struct {
			opt  clientv3.OpOption
			want string
		}{
			{clientv3.WithRev(rev + 99), rpctypes.ErrFutureRev.Error()},
			{clientv3.WithSort(clientv3.SortByValue, clientv3.SortAscend), "does not support custom sort orders"},
			{clientv3.WithMinModRev(3), "does not support revision filters"},
		} {
			chunks := read(tt.opt)
			assert.False(t, len(chunks) != 1 || chunks[0].Err() == nil || !strings.Contains(chunks[0].Err().Error(), tt.want), "%d chunks, want one that says %q: %v", len(chunks), tt.want, chunks)
		}
	})
}

// TestRangeStreamCompacted compacts what a stream is reading, after its first
// chunk and long before the last, which a client that does not read on keeps
// from being sent. One at the compact revision goes on.
func TestRangeStreamCompacted(t *testing.T) {
	for name, c := range map[string]*clientv3.Client{"embedded": startReal(t), "gRPC": dial(t, newServer(t, Config{})).Client} {
		t.Run(name, func(t *testing.T) {
			const keys = 400
			value := strings.Repeat("v", 20_000)
			for i := range keys {
				_, err := c.Put(t.Context(), podKey(i), value)
				require.NoError(t, err)
			}
			last, err := c.Put(t.Context(), "other", "")
			require.NoError(t, err)
			open := func(rev int64) (grpc.ServerStreamingClient[pb.RangeStreamResponse], int) {
				stream, err := pb.NewKVClient(c.ActiveConnection()).RangeStream(t.Context(), &pb.RangeRequest{
					Key: []byte("/"), RangeEnd: []byte("0"), Revision: rev,
				})
				require.NoError(t, err)
				first, err := stream.Recv()
				require.NoError(t, err)
				return stream, len(first.RangeResponse.Kvs)
			}
			older, nOlder := open(last.Header.Revision - 1)
			current, nCurrent := open(0)
			_, err = c.Compact(t.Context(), last.Header.Revision)
			require.NoError(t, err)
			n, err := drain(older, nOlder)
			assert.Less(t, n, keys, "the older one ended after %d keys with %v", n, err)
			assert.Equal(t, rpctypes.ErrCompacted.Error(), status.Convert(err).Message(), "the older one ended after %d keys with %v", n, err)
			n, err = drain(current, nCurrent)
			assert.Equal(t, keys, n, "the current one ended")
			assert.ErrorIs(t, err, io.EOF, "the current one ended")
		})
	}
}

// drain reads a stream to its end. It returns n and how many keys there were.
func drain(stream grpc.ServerStreamingClient[pb.RangeStreamResponse], n int) (int, error) {
	for {
		resp, err := stream.Recv()
		if err != nil {
			return n, err
		}
		n += len(resp.RangeResponse.Kvs)
	}
}
