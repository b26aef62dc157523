package intercept

import (
	"context"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"

	"snowglobe.test/envtest/fault"
)

// Identity is what rules can tell the operations of one client by, besides their
// kind.
type Identity struct {
	// Resource is what the client is for, such as "deployments.apps"; empty if
	// it is for none in particular.
	Resource string
	// Prefix is where the keys of the resource begin, such as
	// "/registry/deployments/"; what follows in a key is NAMESPACE/NAME or NAME.
	Prefix string
	// Caller says on whose behalf a call is made, empty if nobody knows. Nil is
	// nobody.
	Caller func(context.Context) string
}

// Client returns a client whose operations meet the rules, by that identity. Its
// watches have an etcd stream of their own (see WithStream). It shares all else with
// the other clients of the connection; closing it closes nothing.
func (c *Connection) Client(id Identity) *kubernetes.Client {
	return c.decorate(&decorator{conn: c, injector: c.injector, Identity: id, ownStream: true})
}

// Direct returns a client that no rule reaches but a partition. Closing it closes
// nothing.
func (c *Connection) Direct() *kubernetes.Client { return c.decorate(&decorator{conn: c}) }

func (c *Connection) decorate(d *decorator) *kubernetes.Client {
	inner := c.inner.Load()
	outer := clientv3.NewCtxClient(inner.Ctx())
	outer.Cluster, outer.Maintenance, outer.Auth = inner.Cluster, inner.Maintenance, inner.Auth
	outer.KV = &kv{inner.KV, d}
	outer.Lease = &lease{inner.Lease, d}
	outer.Watcher = &watcher{inner.Watcher, d}
	return &kubernetes.Client{Client: outer, Kubernetes: &kubernetesClient{inner.Kubernetes, d}}
}

// decorator is what the parts of one client have in common.
type decorator struct {
	Identity
	conn      *Connection
	injector  *fault.Injector // nil: no rule reaches it
	ownStream bool
}

// operation describes what is about to happen to a key.
func (d *decorator) operation(ctx context.Context, point, key string) fault.Operation {
	op := fault.Operation{Point: point, Resource: d.Resource, Key: key}
	if d.Resource != "" {
		op.Namespace, op.Name = d.object(key)
	}
	if d.Caller != nil {
		op.Caller = d.Caller(ctx)
	}
	return op
}

// object tells the namespace and the name of the object from its key. A key that
// ends in a slash is that of a namespace, as in a list.
func (d *decorator) object(key string) (namespace, name string) {
	object, ok := strings.CutPrefix(key, d.Prefix)
	if !ok {
		return "", ""
	}
	namespace, name, namespaced := strings.Cut(object, "/")
	if !namespaced {
		return "", namespace
	}
	return namespace, name
}

// call makes a call about a key: rules first, then the network.
func call[T any](ctx context.Context, d *decorator, point, key string, do func(context.Context) (T, error)) (T, error) {
	describe := func() fault.Operation { return d.operation(ctx, point, key) }
	return fault.Call(ctx, d.injector, describe, func(ctx context.Context) (T, error) {
		return send(ctx, d.conn, func() (T, error) { return do(ctx) })
	})
}
