package servers

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"snowglobe.test/scenarios/encoding"
	"snowglobe.test/scenarios/engine"
)

func (s *Servers) Stored() engine.Command {
	return engine.Command{
		Name:    "stored",
		Args:    "KEY",
		Asserts: true,
		Summary: "print what is in the store, under which keys and in which encoding",
		Details: `It prints a line for each key that begins with KEY: the key, the encoding, and the version
and kind in which the object was written, or what it was encrypted with. It does not ask
an API server. It fails if there is no such key.`,
		Example: "stored /registry/configmaps/default/\nstdout '^/registry/configmaps/default/a protobuf v1 ConfigMap$'",
		Run: func(ctx context.Context, args []string) error {
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
				fmt.Fprintln(&s.run.Stdout, string(kv.Key), encoding.Of(kv.Value))
			}
			if len(found.Kvs) == 0 {
				return fmt.Errorf("the store has no key that begins with %s", args[0])
			}
			return nil
		},
	}
}
