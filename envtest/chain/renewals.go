package chain

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/reconcilers"
	"k8s.io/klog/v2"

	"snowglobe.test/envtest/storage/intercept"
)

// renewals ends when the first pre-shutdown hook runs. Upstream renews the leases
// by which a server tells that it is alive under a mutex, for which those hooks
// wait; but a renewal may wait for time to pass, for admission that is not ready
// or for a store that is gone, and virtual time does not pass while somebody waits
// for a mutex. So a server that shuts down gives up the renewals under way.
type renewals struct {
	context.Context
	end context.CancelCauseFunc
}

var errNoRenewal = errors.New("the server is shutting down and does not renew its lease")

func newRenewals() renewals {
	ctx, cancel := context.WithCancelCause(context.Background())
	return renewals{ctx, cancel}
}

// peerLease is upstream's reconciler of the lease that tells other servers where
// this one is. Upstream's controller removes the lease under its mutex, for which a
// renewal may wait that is due at that moment. So here the removal goes on in the
// background, and who shuts down waits for it when the mutex is free again.
type peerLease struct {
	reconcilers.PeerEndpointLeaseReconciler
	renewals renewals
	store    *intercept.Connection
	underWay sync.WaitGroup
	removed  chan struct{} // closed when the removal that has begun has ended
	late     atomic.Bool   // it has taken too long
	destroy  func()
}

// removalTimeout bounds how long a removal is waited for. From a store that is there
// the lease is removed at once; upstream would wait twenty seconds for one that is
// gone.
const removalTimeout = 5 * time.Second

func newPeerLease(upstream reconcilers.PeerEndpointLeaseReconciler, renewals renewals, store *intercept.Connection) *peerLease {
	return &peerLease{PeerEndpointLeaseReconciler: upstream, renewals: renewals, store: store, destroy: sync.OnceFunc(upstream.Destroy)}
}

// UpdateLease implements reconcilers.PeerEndpointLeaseReconciler. A renewal that
// is given up ends by itself, before the lease is removed.
func (l *peerLease) UpdateLease(server, ip string, ports []corev1.EndpointPort) error {
	if l.renewals.Err() != nil {
		return errNoRenewal
	}
	done := make(chan error, 1)
	l.underWay.Go(func() {
		err := l.store.Err()
		if err == nil {
			err = l.PeerEndpointLeaseReconciler.UpdateLease(server, ip, ports)
		}
		done <- err
	})
	select {
	case err := <-done:
		return err
	case <-l.renewals.Done():
		return errNoRenewal
	}
}

// RemoveLease implements reconcilers.PeerEndpointLeaseReconciler. It only begins.
func (l *peerLease) RemoveLease(server string) error {
	removed := make(chan struct{})
	l.removed = removed
	go func() {
		defer close(removed)
		l.underWay.Wait()
		if l.late.Load() {
			return
		}
		err := l.store.Err()
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
// when it has ended.
func (l *peerLease) Destroy() {
	if l.removed == nil {
		l.destroy()
	}
}

// awaitRemoval waits for the removal that has begun, if one has, and breaks it off
// when it takes too long: its client may sleep for two minutes before it dials a
// lost store again. It is for the goroutine that shuts the controller down.
func (l *peerLease) awaitRemoval() {
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
