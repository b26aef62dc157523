package intercept

import (
	"context"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"

	"snowglobe.test/envtest/fault"
)

// View is how the operations of one client look to rules.
type View struct {
	Edge *fault.Injector
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

// Client returns a client that does what the inner one does, bent as rules say.
// It shares all the inner one has; closing it closes nothing. With no Edge it is
// a copy.
func Client(inner *kubernetes.Client, v View) *kubernetes.Client {
	outer := clientv3.NewCtxClient(inner.Ctx())
	outer.Cluster, outer.Maintenance, outer.Auth = inner.Cluster, inner.Maintenance, inner.Auth
	if v.Edge == nil {
		outer.KV, outer.Lease, outer.Watcher = inner.KV, inner.Lease, inner.Watcher
		return &kubernetes.Client{Client: outer, Kubernetes: inner.Kubernetes}
	}
	outer.KV = &kv{KV: inner.KV, View: v}
	outer.Lease = &lease{Lease: inner.Lease, View: v}
	outer.Watcher = &watcher{Watcher: inner.Watcher, View: v}
	return &kubernetes.Client{Client: outer, Kubernetes: &kubernetesClient{inner.Kubernetes, v}}
}

// operation describes what is about to happen to a key.
func (v *View) operation(ctx context.Context, point, key string) fault.Operation {
	op := fault.Operation{Point: point, Resource: v.Resource, Key: key}
	if object, ok := strings.CutPrefix(key, v.Prefix); ok && v.Resource != "" {
		op.Namespace, op.Name = split(object)
	}
	if v.Caller != nil {
		op.Caller = v.Caller(ctx)
	}
	return op
}

// split tells the namespace from the name in what follows a resource's prefix.
// What ends in a slash is a namespace, as in a list.
func split(object string) (namespace, name string) {
	namespace, name, namespaced := strings.Cut(object, "/")
	if !namespaced {
		return "", namespace
	}
	return namespace, name
}

// call makes a call about a key.
func call[T any](ctx context.Context, v *View, point, key string, do func(context.Context) (T, error)) (T, error) {
	return fault.Call(ctx, v.Edge, func() fault.Operation { return v.operation(ctx, point, key) }, do)
}
