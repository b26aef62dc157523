package chain

import (
	"context"
	"errors"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/reconcilers"

	"snowglobe.test/envtest/storage"
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
// this one is.
type peerLease struct {
	reconcilers.PeerEndpointLeaseReconciler
	renewals renewals
	link     *storage.Link
	underWay sync.WaitGroup
}

// UpdateLease implements reconcilers.PeerEndpointLeaseReconciler. A renewal that
// is given up ends by itself, before the lease is removed.
func (l *peerLease) UpdateLease(server, ip string, ports []corev1.EndpointPort) error {
	done := make(chan error, 1)
	l.underWay.Go(func() {
		err := l.link.Err()
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

// RemoveLease implements reconcilers.PeerEndpointLeaseReconciler.
func (l *peerLease) RemoveLease(server string) error {
	l.underWay.Wait()
	if err := l.link.Err(); err != nil {
		return err
	}
	return l.PeerEndpointLeaseReconciler.RemoveLease(server)
}
