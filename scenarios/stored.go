package scenarios

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

var storedCommand = command{
	name:  "stored",
	args:  "KEY",
	least: 1, most: 1,
	summary: "print what is in the store, under which keys and in which encoding",
	details: `It prints a line for each key that begins with KEY: the key, the encoding, and the version
and kind in which the object was written, or what it was encrypted with. It does not ask
an API server. It fails if there is no such key.`,
	example: "stored /registry/configmaps/default/\nstdout '^/registry/configmaps/default/a protobuf v1 ConfigMap$'",
	run: func(ctx context.Context, s *session, args []string) error {
		if s.store == nil {
			return errors.New("there is no store before the first start")
		}
		client, err := s.store.Client()
		if err != nil {
			return err
		}
		defer func() { _ = client.Close() }()
		found, err := client.KV.Get(ctx, args[0], clientv3.WithPrefix())
		if err != nil {
			return fmt.Errorf("read the store: %w", err)
		}
		for _, kv := range found.Kvs {
			fmt.Fprintln(&s.out, string(kv.Key), encodingOf(kv.Value))
		}
		if len(found.Kvs) == 0 {
			return fmt.Errorf("the store has no key that begins with %s", args[0])
		}
		return nil
	},
}

// What values in the store begin with, by upstream's encodings.
var (
	protobufPrefix  = []byte("k8s\x00")
	encryptedPrefix = []byte("k8s:enc:")
)

// encodingOf says how a value is encoded, and what it is.
func encodingOf(value []byte) string {
	var kind metav1.TypeMeta
	switch {
	case bytes.HasPrefix(value, encryptedPrefix):
		// k8s:enc:PROVIDER:VERSION:KEY: and then what only the key can read
		parts := strings.SplitN(string(value), ":", 6)
		return strings.TrimSpace("encrypted " + strings.Join(parts[2:min(len(parts), 5)], " "))
	case bytes.HasPrefix(value, protobufPrefix):
		var unknown runtime.Unknown
		if err := unknown.Unmarshal(value[len(protobufPrefix):]); err == nil {
			return fmt.Sprintf("protobuf %s %s", unknown.APIVersion, unknown.Kind)
		}
	case json.Unmarshal(value, &kind) == nil && kind.Kind != "":
		return fmt.Sprintf("json %s %s", kind.APIVersion, kind.Kind)
	}
	return fmt.Sprintf("%d bytes", len(value))
}
