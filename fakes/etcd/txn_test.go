package etcd

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
)

func TestCompare(t *testing.T) {
	lease := int64(0)
	tests := []struct {
		name string
		cmp  func() clientv3.Cmp
		want bool
	}{
		{"version", func() clientv3.Cmp { return clientv3.Compare(clientv3.Version("a"), "=", 2) }, true},
		{"version of none", func() clientv3.Cmp { return clientv3.Compare(clientv3.Version("x"), "=", 0) }, true},
		{"create", func() clientv3.Cmp { return clientv3.Compare(clientv3.CreateRevision("a"), "<", 3) }, true},
		{"mod", func() clientv3.Cmp { return clientv3.Compare(clientv3.ModRevision("a"), ">", 3) }, false},
		{"value", func() clientv3.Cmp { return clientv3.Compare(clientv3.Value("a"), "=", "2") }, true},
		{"value not", func() clientv3.Cmp { return clientv3.Compare(clientv3.Value("a"), "!=", "2") }, false},
		{"value of none", func() clientv3.Cmp { return clientv3.Compare(clientv3.Value("x"), "=", "") }, false},
		{"value of none not", func() clientv3.Cmp { return clientv3.Compare(clientv3.Value("x"), "!=", "1") }, false},
		{"lease", func() clientv3.Cmp { return clientv3.Compare(clientv3.LeaseValue("b"), "=", lease) }, true},
		{"lease of none", func() clientv3.Cmp { return clientv3.Compare(clientv3.LeaseValue("a"), "=", 0) }, true},
		{"all of a range", func() clientv3.Cmp { return clientv3.Compare(clientv3.Version("a"), ">", 0).WithRange("c") }, true},
		{"not all of a range", func() clientv3.Cmp { return clientv3.Compare(clientv3.Version("a"), "=", 2).WithRange("c") }, false},
		{"empty range", func() clientv3.Cmp { return clientv3.Compare(clientv3.Version("x"), "=", 0).WithPrefix() }, true},
	}
	eachClient(t, Config{}, func(t *testing.T, s *Server, c *kubernetes.Client) {
		ctx := context.Background()
		l, err := c.Grant(ctx, 3600)
		require.NoError(t, err)
		lease = int64(l.ID)
		put(t, c, "a", "1")
		put(t, c, "a", "2")
		put(t, c, "b", "1", clientv3.WithLease(l.ID))
		for _, tt := range tests {
			resp, err := c.Txn(ctx).If(tt.cmp()).Commit()
			assert.False(t, err != nil || resp.Succeeded != tt.want, "%s: %v, %v, want %t", tt.name, resp, err, tt.want)
		}
	})
}

func TestTxn(t *testing.T) {
	eachClient(t, Config{}, func(t *testing.T, s *Server, c *kubernetes.Client) {
		ctx := context.Background()
		put(t, c, "a", "1")
		// Everything in a transaction is of one revision, ranges see the writes
		// before them, and compares see none.
		resp, err := c.Txn(ctx).If(clientv3.Compare(clientv3.Value("a"), "=", "1")).Then(
			clientv3.OpGet("a"),
			clientv3.OpPut("a", "2", clientv3.WithPrevKV()),
			clientv3.OpGet("a"),
			clientv3.OpTxn(
				[]clientv3.Cmp{clientv3.Compare(clientv3.Value("a"), "=", "1")},
				[]clientv3.Op{clientv3.OpPut("b", "1"), clientv3.OpGet("", clientv3.WithPrefix())},
				[]clientv3.Op{clientv3.OpPut("b", "2")},
			),
			clientv3.OpDelete("z"),
		).Commit()
		require.NoError(t, err)
		require.True(t, resp.Succeeded, "got %v", resp)
		require.Equal(t, int64(3), resp.Header.Revision, "got %v", resp)
		require.Len(t, resp.Responses, 5, "got %v", resp)
		for i, want := range []string{"a=1@2/2/1", "a=2@2/3/2"} {
			assert.Equal(t, want, brief(resp.Responses[2*i].GetResponseRange().Kvs), "range %d", i)
		}
		prev := resp.Responses[1].GetResponsePut().PrevKv
		assert.Equal(t, "1", string(prev.Value), "previous value %v", prev)
		inner := resp.Responses[3].GetResponseTxn()
		assert.True(t, inner.Succeeded, "inner: %v", inner)
		assert.Equal(t, "a=2@2/3/2 b=1@3/3/1", brief(inner.Responses[1].GetResponseRange().Kvs), "inner: %v", inner)
		d := resp.Responses[4].GetResponseDeleteRange()
		assert.Equal(t, int64(0), d.Deleted, "delete of nothing: %v", d)
		assert.Equal(t, int64(3), d.Header.Revision, "delete of nothing: %v", d)
		assert.Equal(t, int64(3), s.Revision(), "revision")
		// One that changes nothing has no revision of its own.
		resp, err = c.Txn(ctx).Then(clientv3.OpDelete("z")).Commit()
		assert.False(t, err != nil || resp.Header.Revision != 3, "got %v, %v", resp, err)
	})
}

func TestTxnErrors(t *testing.T) {
	puts := func(n int) (ops []clientv3.Op) {
		for i := range n {
			ops = append(ops, clientv3.OpPut(fmt.Sprint(i), ""))
		}
		return ops
	}
	nest := func(ops ...clientv3.Op) clientv3.Op { return clientv3.OpTxn(nil, ops, nil) }
	tests := []struct {
		name string
		ops  []clientv3.Op
		want error
	}{
		{"as many as allowed", puts(8), nil},
		{"too many", puts(9), rpctypes.ErrTooManyOps},
		{"too many with the nested", []clientv3.Op{nest(puts(8)...)}, rpctypes.ErrTooManyOps},
		{"put twice", []clientv3.Op{clientv3.OpPut("a", ""), clientv3.OpPut("a", "")}, rpctypes.ErrDuplicateKey},
		{"put and delete", []clientv3.Op{clientv3.OpPut("a", ""), clientv3.OpDelete("a")}, rpctypes.ErrDuplicateKey},
		{"put in a deleted range", []clientv3.Op{clientv3.OpDelete("", clientv3.WithRange("z")), clientv3.OpPut("a", "")}, rpctypes.ErrEmptyKey},
		{"put in a deleted prefix", []clientv3.Op{clientv3.OpDelete("a", clientv3.WithPrefix()), clientv3.OpPut("ab", "")}, rpctypes.ErrDuplicateKey},
		{"put twice, nested", []clientv3.Op{clientv3.OpPut("a", ""), nest(clientv3.OpPut("a", ""))}, rpctypes.ErrDuplicateKey},
		{"put twice, in siblings", []clientv3.Op{nest(clientv3.OpPut("a", "")), nest(clientv3.OpPut("a", ""))}, rpctypes.ErrDuplicateKey},
		{"put in either branch", []clientv3.Op{clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpPut("a", "")}, []clientv3.Op{clientv3.OpPut("a", "")})}, nil},
		{"put, then deleted by a sibling", []clientv3.Op{nest(clientv3.OpPut("a", "")), nest(clientv3.OpDelete("a"))}, nil},
		{"deleted twice", []clientv3.Op{clientv3.OpDelete("a"), clientv3.OpDelete("a")}, nil},
		{"future", []clientv3.Op{clientv3.OpPut("a", ""), clientv3.OpGet("a", clientv3.WithRev(1000))}, rpctypes.ErrFutureRev},
		{"no such lease", []clientv3.Op{clientv3.OpPut("a", "", clientv3.WithLease(9))}, rpctypes.ErrLeaseNotFound},
		{"nothing to ignore", []clientv3.Op{clientv3.OpPut("q", "", clientv3.WithIgnoreValue())}, rpctypes.ErrKeyNotFound},
		{"value and ignored", []clientv3.Op{clientv3.OpPut("q", "1", clientv3.WithIgnoreValue())}, rpctypes.ErrValueProvided},
		{"lease and ignored", []clientv3.Op{clientv3.OpPut("q", "", clientv3.WithIgnoreLease(), clientv3.WithLease(1))}, rpctypes.ErrLeaseProvided},
		{"empty key", []clientv3.Op{clientv3.OpPut("", "")}, rpctypes.ErrEmptyKey},
	}
	eachClient(t, Config{MaxTxnOps: 8}, func(t *testing.T, s *Server, c *kubernetes.Client) {
		for _, tt := range tests {
			before := s.Revision()
			_, err := c.Txn(context.Background()).Then(tt.ops...).Commit()
			assert.ErrorIs(t, err, tt.want, "%s", tt.name)
			assert.False(t, err != nil && s.Revision() != before, "%s: failed, and changed something", tt.name)
		}
	})
}

func TestRequestTooLarge(t *testing.T) {
	eachClient(t, Config{MaxRequestBytes: 10000}, func(t *testing.T, s *Server, c *kubernetes.Client) {
		ctx := context.Background()
		fits, large := strings.Repeat("v", 9000), strings.Repeat("v", 10000)
		_, err := c.Put(ctx, "a", fits)
		assert.NoError(t, err)
		_, err = c.Put(ctx, "a", large)
		assert.ErrorIs(t, err, rpctypes.ErrRequestTooLarge)
		_, err = c.Txn(ctx).Then(clientv3.OpPut("a", large)).Commit()
		assert.ErrorIs(t, err, rpctypes.ErrRequestTooLarge)
		_, err = c.Kubernetes.OptimisticPut(ctx, "k", []byte(fits), 0, kubernetes.PutOptions{})
		assert.NoError(t, err)
		_, err = c.Kubernetes.OptimisticPut(ctx, "k2", []byte(large), 0, kubernetes.PutOptions{})
		assert.ErrorIs(t, err, rpctypes.ErrRequestTooLarge)
	})
}

func TestPutOptions(t *testing.T) {
	eachClient(t, Config{}, func(t *testing.T, s *Server, c *kubernetes.Client) {
		ctx := context.Background()
		l, err := c.Grant(ctx, 3600)
		require.NoError(t, err)
		put(t, c, "a", "1", clientv3.WithLease(l.ID))
		put(t, c, "a", "2", clientv3.WithIgnoreLease())
		put(t, c, "a", "", clientv3.WithIgnoreValue(), clientv3.WithLease(l.ID))
		resp, err := c.KV.Get(ctx, "a")
		assert.False(t, err != nil || brief(resp.Kvs) != "a=2@2/4/3" || resp.Kvs[0].Lease != int64(l.ID), "got %v, %v", resp, err)
		put(t, c, "a", "", clientv3.WithIgnoreValue()) // takes it off the lease
		left, err := c.TimeToLive(ctx, l.ID, clientv3.WithAttachedKeys())
		assert.False(t, err != nil || len(left.Keys) != 0, "keys of the lease: %v, %v", left, err)
	})
}
