package services

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"snowglobe.test/fakes/etcd/internal/keyspace"
)

// TestCodec reads with protobuf what the codec wrote: short and long ranges, with
// fields of all sizes, empty ones and some that no store has.
func TestCodec(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	number := func() int64 { return int64(random.Uint64()) >> random.IntN(65) }
	text := func() []byte {
		return bytes.Repeat([]byte{byte(random.Uint32())}, random.IntN(1<<random.IntN(12)))
	}
	for _, keys := range []int{0, 1, 2, 7, 100, minPartKeys - 1, minPartKeys, 3*minPartKeys + 1} {
		want := &pb.RangeResponse{
			Header: keyspace.Header(number()),
			More:   keys%2 == 0, Count: number(),
		}
		for range keys {
			want.Kvs = append(want.Kvs, &mvccpb.KeyValue{
				Key: text(), CreateRevision: number(), ModRevision: number(), Version: number(), Value: text(), Lease: number(),
			})
		}
		if keys > 2 {
			*want.Kvs[1] = mvccpb.KeyValue{}
			want.Kvs[2].Value = bytes.Repeat([]byte("v"), 2*maxBufferBytes)
		}
		data, err := newCodec().Marshal(want)
		require.NoError(t, err)
		assert.Equal(t, proto.Size(want), data.Len(), "%d keys: the bytes that protobuf makes, and ours", keys)
		got := &pb.RangeResponse{}
		require.NoError(t, proto.Unmarshal(data.Materialize(), got), "%d keys", keys)
		if !proto.Equal(want, got) {
			for i := range want.Kvs {
				require.True(t, i < len(got.Kvs) && proto.Equal(want.Kvs[i], got.Kvs[i]), "%d keys: key %d was %v and is read as something else", keys, i, want.Kvs[i])
			}
			t.Errorf("%d keys: read back as\n%v", keys, got)
		}
		data.Free()
	}
}

// TestCodecKnowsAllFields sets every field that etcd's API has today: a field of
// a later etcd that the codec does not know is not lost in silence.
func TestCodecKnowsAllFields(t *testing.T) {
	kv := &mvccpb.KeyValue{}
	want := &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: 7}, Kvs: []*mvccpb.KeyValue{kv}}
	for _, m := range []protoreflect.Message{kv.ProtoReflect(), want.ProtoReflect()} {
		fields := m.Descriptor().Fields()
		for i := range fields.Len() {
			switch f := fields.Get(i); {
			case m.Has(f): // header and kvs
			case f.Kind() == protoreflect.BytesKind:
				m.Set(f, protoreflect.ValueOfBytes([]byte(f.Name())))
			case f.Kind() == protoreflect.Int64Kind:
				m.Set(f, protoreflect.ValueOfInt64(int64(f.Number())))
			case f.Kind() == protoreflect.BoolKind:
				m.Set(f, protoreflect.ValueOfBool(true))
			default:
				t.Errorf("%s is new: encode it, and set it here", f.FullName())
			}
		}
	}
	data, err := newCodec().Marshal(want)
	require.NoError(t, err)
	got := &pb.RangeResponse{}
	require.NoError(t, proto.Unmarshal(data.Materialize(), got))
	assert.True(t, proto.Equal(want, got), "%v is read back as %v", want, got)
}

// TestCodecPieces checks that a get takes a small buffer and a list large ones.
func TestCodecPieces(t *testing.T) {
	kv := &mvccpb.KeyValue{Key: []byte("a"), Value: make([]byte, 100)}
	get := encodeKeys([]*mvccpb.KeyValue{kv})
	require.Len(t, get, 1, "the pieces of a get")
	assert.LessOrEqual(t, cap(get[0].ReadOnlyData()), firstBufferBytes, "the bytes of a get")
	list := make([]*mvccpb.KeyValue, 100_000)
	for i := range list {
		list[i] = kv
	}
	pieces := encodeKeys(list)
	assert.LessOrEqual(t, len(pieces), pieces.Len()/maxBufferBytes+10, "a list of %d bytes takes", pieces.Len())
}
