package upstream

// Works around reconcilers.PeerEndpointLeaseController (k8s.io/apiserver/pkg/
// reconcilers), which renews and removes the lease that tells other servers where
// this one is under one mutex. TestRenewalDuringRemoval runs upstream's controller.

import (
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/reconcilers"
	"k8s.io/klog/v2"
)

// PeerLease is upstream's reconciler of a server's peer lease. A renewal due while
// the controller removes the lease would wait for its mutex. So the removal goes on
// in the background, and who shuts down waits for it when the mutex is free.
type PeerLease struct {
	reconcilers.PeerEndpointLeaseReconciler
	renewals *Renewals
	storeErr func() error
	underWay sync.WaitGroup
	removed  chan struct{} // closed when the removal that has begun has ended
	late     atomic.Bool   // it has taken too long
	destroy  func()
}

// removalTimeout bounds the wait for a removal. A store that is there removes the
// lease at once; for one that is gone upstream would wait twenty seconds.
const removalTimeout = 5 * time.Second

// NewPeerLease wraps upstream's reconciler. storeErr says why the store cannot be
// reached at the moment, nil if it can: the reconciler has its own etcd client.
func NewPeerLease(upstream reconcilers.PeerEndpointLeaseReconciler, renewals *Renewals, storeErr func() error) *PeerLease {
	return &PeerLease{PeerEndpointLeaseReconciler: upstream, renewals: renewals, storeErr: storeErr, destroy: sync.OnceFunc(upstream.Destroy)}
}

// UpdateLease implements reconcilers.PeerEndpointLeaseReconciler. A renewal that
// is broken off ends by itself, before the lease is removed.
func (l *PeerLease) UpdateLease(server, ip string, ports []corev1.EndpointPort) error {
	if l.renewals.ctx.Err() != nil {
		return errNoRenewal
	}
	done := make(chan error, 1)
	l.underWay.Go(func() {
		err := l.storeErr()
		if err == nil {
			err = l.PeerEndpointLeaseReconciler.UpdateLease(server, ip, ports)
		}
		done <- err
	})
	select {
	case err := <-done:
		return err
	case <-l.renewals.ctx.Done():
		return errNoRenewal
	}
}

// RemoveLease implements reconcilers.PeerEndpointLeaseReconciler. It only begins.
func (l *PeerLease) RemoveLease(server string) error {
	removed := make(chan struct{})
	l.removed = removed
	go func() {
		defer close(removed)
		l.underWay.Wait()
		if l.late.Load() {
			return
		}
		err := l.storeErr()
		if err == nil {
			err = l.PeerEndpointLeaseReconciler.RemoveLease(server)
		}
		if err != nil {
			klog.Errorf("Unable to remove peer endpoint leases: %v", err)
		}
		l.destroy()
	}()
	return nil
}

// Destroy implements reconcilers.PeerEndpointLeaseReconciler. A removal does it
// when it has ended. l may be nil.
func (l *PeerLease) Destroy() {
	if l != nil && l.removed == nil {
		l.destroy()
	}
}

// AwaitRemoval waits for the removal that has begun, if any (l may be nil), and
// breaks it off when it takes too long: its client may sleep for two minutes before
// it redials a lost store. Only the goroutine that shuts the controller down may
// call it.
func (l *PeerLease) AwaitRemoval() {
	if l == nil || l.removed == nil {
		return
	}
	select {
	case <-l.removed:
	case <-time.After(removalTimeout):
		l.late.Store(true)
		l.destroy()
	}
	l.removed = nil
}
