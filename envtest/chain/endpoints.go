package chain

import (
	"net"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/controlplane/reconcilers"

	"snowglobe.test/envtest/storage/intercept"
)

// endpoints is upstream's reconciler of the endpoints of the kubernetes service.
// Upstream's works under a mutex; a reconciliation may wait for time to pass, and
// virtual time does not pass while another waits for a mutex. So here they take
// turns by a channel. The reconciler's lease has an etcd client of upstream's own
// making, which a partition may not reach: nothing is done while there is one.
type endpoints struct {
	reconcilers.EndpointReconciler
	store   *intercept.Connection
	turn    chan struct{}
	destroy func()
}

func newEndpoints(upstream reconcilers.EndpointReconciler, store *intercept.Connection) *endpoints {
	return &endpoints{EndpointReconciler: upstream, store: store, turn: make(chan struct{}, 1), destroy: sync.OnceFunc(upstream.Destroy)}
}

// ReconcileEndpoints implements reconcilers.EndpointReconciler.
func (e *endpoints) ReconcileEndpoints(service string, ip net.IP, ports []corev1.EndpointPort, reconcilePorts bool) error {
	return e.inTurn(func() error {
		return e.EndpointReconciler.ReconcileEndpoints(service, ip, ports, reconcilePorts)
	})
}

// RemoveEndpoints implements reconcilers.EndpointReconciler.
func (e *endpoints) RemoveEndpoints(service string, ip net.IP, ports []corev1.EndpointPort) error {
	return e.inTurn(func() error { return e.EndpointReconciler.RemoveEndpoints(service, ip, ports) })
}

func (e *endpoints) inTurn(do func() error) error {
	e.turn <- struct{}{}
	defer func() { <-e.turn }()
	if err := e.store.Err(); err != nil {
		return err
	}
	return do()
}

// Destroy implements reconcilers.EndpointReconciler.
func (e *endpoints) Destroy() { e.destroy() }
