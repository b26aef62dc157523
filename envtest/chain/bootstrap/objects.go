package bootstrap

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/lru"
)

// objectPrefixes are where a boot writes what every boot with the same flags writes: all but the
// addresses of the server, its leases, and what it signs with.
var objectPrefixes = []string{
	"/registry/apiregistration.k8s.io/apiservices/",
	"/registry/clusterrolebindings/",
	"/registry/clusterroles/",
	"/registry/flowschemas/",
	"/registry/namespaces/",
	"/registry/priorityclasses/",
	"/registry/prioritylevelconfigurations/",
	"/registry/rolebindings/",
	"/registry/roles/",
	"/registry/servicecidrs/",
}

// objects has what an earlier boot of the process wrote, 180 objects with 200 kB in all, by the kind of boot.
var objects = lru.New(4)

// KeepObjects keeps the objects in the store of a server that has just become ready, for the next
// boots of its kind: those that write the same.
func KeepObjects(ctx context.Context, kind string, store clientv3.KV) error {
	if _, known := objects.Get(kind); known {
		return nil
	}
	var all []*mvccpb.KeyValue
	for _, prefix := range objectPrefixes {
		answer, err := store.Get(ctx, prefix, clientv3.WithPrefix())
		if err != nil {
			return fmt.Errorf("read the objects of a boot: %w", err)
		}
		all = append(all, answer.Kvs...)
	}
	objects.Add(kind, all)
	return nil
}

// WriteObjects writes the objects of an earlier boot of its kind, if there was one, to the empty store of
// a server that has not begun, which then finds them as a restarted one would. Each has a UID of its own
// and was created now. It tells wrote of each, with its revision.
func WriteObjects(
	ctx context.Context, kind string, store clientv3.KV, wrote func(key string, revision int64),
) (written bool, err error) {
	earlier, ok := objects.Get(kind)
	if !ok {
		return false, nil
	}
	now := metav1.Now()
	for _, kv := range earlier.([]*mvccpb.KeyValue) {
		value, err := renew(kv.Value, now)
		if err != nil {
			return false, fmt.Errorf("renew an object of an earlier boot, %s: %w", kv.Key, err)
		}
		answer, err := store.Put(ctx, string(kv.Key), string(value))
		if err != nil {
			return false, fmt.Errorf("write an object of an earlier boot, %s: %w", kv.Key, err)
		}
		wrote(string(kv.Key), answer.Header.Revision)
	}
	return true, nil
}

// protobufPrefix begins every value that is a runtime.Unknown; the others are JSON.
var protobufPrefix = []byte("k8s\x00")

// renew gives an object another UID, and another time of creation.
func renew(value []byte, now metav1.Time) ([]byte, error) {
	if !bytes.HasPrefix(value, protobufPrefix) {
		return renewAPIService(value, now)
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(value[len(protobufPrefix):]); err != nil {
		return nil, err
	}
	// The first field of every object is its metadata, number 1.
	number, kind, head := protowire.ConsumeTag(envelope.Raw)
	if number != 1 || kind != protowire.BytesType {
		return nil, fmt.Errorf("it does not begin with metadata, but with field %d", number)
	}
	encoded, length := protowire.ConsumeBytes(envelope.Raw[head:])
	if length < 0 {
		return nil, fmt.Errorf("its metadata: %w", protowire.ParseError(length))
	}
	var metadata metav1.ObjectMeta
	if err := metadata.Unmarshal(encoded); err != nil {
		return nil, fmt.Errorf("its metadata: %w", err)
	}
	renewMetadata(&metadata, now)
	encoded, err := metadata.Marshal()
	if err != nil {
		return nil, fmt.Errorf("its metadata: %w", err)
	}
	object := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), encoded)
	envelope.Raw = append(object, envelope.Raw[head+length:]...)
	encoded, err = envelope.Marshal()
	return append(bytes.Clone(protobufPrefix), encoded...), err
}

// renewAPIService is renew for the one resource that the aggregator keeps as JSON.
func renewAPIService(value []byte, now metav1.Time) ([]byte, error) {
	var service apiregistrationv1.APIService
	if err := json.Unmarshal(value, &service); err != nil {
		return nil, err
	}
	renewMetadata(&service.ObjectMeta, now)
	encoded, err := json.Marshal(&service)
	return append(encoded, '\n'), err
}

func renewMetadata(metadata *metav1.ObjectMeta, now metav1.Time) {
	metadata.UID, metadata.CreationTimestamp = uuid.NewUUID(), now
	for i := range metadata.ManagedFields {
		metadata.ManagedFields[i].Time = &now
	}
}
