package upstream

// Works around leaseEndpointReconciler (k8s.io/kubernetes/pkg/controlplane/
// reconcilers, lease.go), which reconciles under a mutex. TestEndpointsTurn shows
// what it is for; that upstream's interface is still the one below, the compiler
// checks where the chain puts an Endpoints in upstream's place.

import (
	"context"
	"fmt"
	"net"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"snowglobe.test/internal/turn"
)

// EndpointReconciler is upstream's reconcilers.EndpointReconciler, which keeps the
// endpoints of the kubernetes service.
type EndpointReconciler interface {
	ValidateIP(ip net.IP) error
	ReconcileEndpoints(service string, ip net.IP, ports []corev1.EndpointPort, reconcilePorts bool) error
	RemoveEndpoints(service string, ip net.IP, ports []corev1.EndpointPort) error
	StopReconciling()
	Destroy()
}

// Endpoints is upstream's reconciler, whose operations take turns by a channel. A
// reconciliation may wait for time to pass, and virtual time does not pass while
// another waits for upstream's mutex.
type Endpoints struct {
	EndpointReconciler
	server   context.Context
	storeErr func() error
	turn     turn.Lock
	destroy  func()
}

// NewEndpoints wraps upstream's reconciler. Waiting for a turn ends with the
// server's context. storeErr says why the store cannot be reached at the moment,
// nil if it can: the lease of the reconciler has an etcd client of its own.
func NewEndpoints(server context.Context, upstream EndpointReconciler, storeErr func() error) *Endpoints {
	return &Endpoints{
		EndpointReconciler: upstream, server: server, storeErr: storeErr,
		turn: turn.New(), destroy: sync.OnceFunc(upstream.Destroy),
	}
}

// ReconcileEndpoints implements EndpointReconciler.
func (e *Endpoints) ReconcileEndpoints(service string, ip net.IP, ports []corev1.EndpointPort, reconcilePorts bool) error {
	return e.inTurn(func() error {
		return e.EndpointReconciler.ReconcileEndpoints(service, ip, ports, reconcilePorts)
	})
}

// RemoveEndpoints implements EndpointReconciler.
func (e *Endpoints) RemoveEndpoints(service string, ip net.IP, ports []corev1.EndpointPort) error {
	return e.inTurn(func() error { return e.EndpointReconciler.RemoveEndpoints(service, ip, ports) })
}

func (e *Endpoints) inTurn(do func() error) error {
	if err := e.turn.Take(e.server); err != nil {
		return fmt.Errorf("endpoints of the kubernetes service: %w", err)
	}
	defer e.turn.Give()
	if err := e.storeErr(); err != nil {
		return err
	}
	return do()
}

// Destroy implements EndpointReconciler.
func (e *Endpoints) Destroy() { e.destroy() }
