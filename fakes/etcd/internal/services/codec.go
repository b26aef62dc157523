package services

import (
	"runtime"
	"slices"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// minPartKeys is how many keys are worth encoding on a separate processor.
const minPartKeys = 1000

// Sizes of the buffers of a range, each four times the one before, so that a get
// takes a small buffer and a list takes few. gRPC's pool has all these sizes.
const (
	firstBufferBytes = 256
	maxBufferBytes   = 1 << 20
)

// Field numbers of messages of etcd's API.
const (
	rangeKvs        protowire.Number = 2 // of a RangeResponse
	watchID         protowire.Number = 2 // of a WatchResponse
	keyValueKey     protowire.Number = 1
	keyValueCreate  protowire.Number = 2
	keyValueMod     protowire.Number = 3
	keyValueVersion protowire.Number = 4
	keyValueValue   protowire.Number = 5
	keyValueLease   protowire.Number = 6
)

// encoded is a message that is already encoded.
type encoded mem.BufferSlice

// codec is gRPC's protobuf codec, except for encoded messages and ranges: the
// general one goes through each field of a hundred thousand keys by reflection,
// twice, and copies all into one buffer; this one goes through the keys once.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(protocodec.Name)} }

// Marshal encodes v, which is a message.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	switch m := v.(type) {
	case encoded:
		return mem.BufferSlice(m), nil
	case *pb.RangeResponse:
		if len(m.Kvs) > 0 {
			return encodeRange(m)
		}
	}
	return c.CodecV2.Marshal(v)
}

// encodeRange encodes r. Most of the time goes into fetching keys from all over
// the memory, so long ranges are split among several processors.
func encodeRange(r *pb.RangeResponse) (mem.BufferSlice, error) {
	rest, err := proto.Marshal(&pb.RangeResponse{Header: r.Header, More: r.More, Count: r.Count})
	if err != nil {
		return nil, err
	}
	parts := make([]mem.BufferSlice, min(runtime.GOMAXPROCS(0), 1+len(r.Kvs)/minPartKeys))
	var encoders sync.WaitGroup
	for i := range parts {
		kvs := r.Kvs[i*len(r.Kvs)/len(parts) : (i+1)*len(r.Kvs)/len(parts)]
		encode := func() { parts[i] = encodeKeys(kvs) }
		if i < len(parts)-1 {
			encoders.Go(encode)
		} else {
			encode()
		}
	}
	encoders.Wait()
	return append(slices.Concat(parts...), mem.SliceBuffer(rest)), nil
}

// encodeKeys encodes kvs as they are in a RangeResponse.
func encodeKeys(kvs []*mvccpb.KeyValue) mem.BufferSlice {
	b := buffers{pool: mem.DefaultBufferPool()}
	for _, kv := range kvs {
		size := keyValueSize(kv)
		b.reserve(1 + protowire.SizeBytes(size))
		b.data = protowire.AppendTag(b.data, rangeKvs, protowire.BytesType)
		b.data = protowire.AppendVarint(b.data, uint64(size))
		b.data = appendKeyValue(b.data, kv)
	}
	b.close()
	return b.full
}

// keyValueSize returns how many bytes appendKeyValue appends.
func keyValueSize(kv *mvccpb.KeyValue) int {
	size := sizeBytes(kv.Key) + sizeBytes(kv.Value)
	for _, n := range [...]int64{kv.CreateRevision, kv.ModRevision, kv.Version, kv.Lease} {
		if n != 0 {
			size += 1 + protowire.SizeVarint(uint64(n))
		}
	}
	return size
}

func sizeBytes(v []byte) int {
	if len(v) == 0 {
		return 0
	}
	return 1 + protowire.SizeBytes(len(v))
}

func appendKeyValue(b []byte, kv *mvccpb.KeyValue) []byte {
	b = appendBytes(b, keyValueKey, kv.Key)
	b = appendNumber(b, keyValueCreate, kv.CreateRevision)
	b = appendNumber(b, keyValueMod, kv.ModRevision)
	b = appendNumber(b, keyValueVersion, kv.Version)
	b = appendBytes(b, keyValueValue, kv.Value)
	return appendNumber(b, keyValueLease, kv.Lease)
}

func appendBytes(b []byte, field protowire.Number, v []byte) []byte {
	if len(v) == 0 {
		return b
	}
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
}

func appendNumber(b []byte, field protowire.Number, n int64) []byte {
	if n == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), uint64(n))
}

// buffers are encoded data in pieces.
type buffers struct {
	pool  mem.BufferPool
	full  mem.BufferSlice
	data  []byte  // the piece being filled
	whole *[]byte // data as it came from the pool
}

// reserve makes room for n bytes in the piece.
func (b *buffers) reserve(n int) {
	if cap(b.data)-len(b.data) >= n {
		return
	}
	size := min(max(4*cap(b.data), firstBufferBytes), maxBufferBytes)
	b.close()
	b.whole = b.pool.Get(max(size, n))
	b.data = (*b.whole)[:0]
}

// close ends the piece.
func (b *buffers) close() {
	if b.whole == nil {
		return
	}
	*b.whole = b.data
	b.full = append(b.full, mem.NewBuffer(b.whole, b.pool))
	b.whole, b.data = nil, nil
}
