package upstream

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/reconcilers"
)

// slowReconciler removes a lease from a store that answers late.
type slowReconciler struct {
	reconcilers.PeerEndpointLeaseReconciler
	did []string
}

func (r *slowReconciler) UpdateLease(string, string, []corev1.EndpointPort) error {
	r.did = append(r.did, "update")
	return nil
}

func (r *slowReconciler) StopReconciling() { r.did = append(r.did, "stop") }

func (r *slowReconciler) RemoveLease(string) error {
	time.Sleep(time.Second)
	r.did = append(r.did, "remove")
	return nil
}

func (r *slowReconciler) Destroy() { r.did = append(r.did, "destroy") }

// TestRenewalDuringRemoval has a renewal come due while the lease is removed. Time
// would not pass any more if it waited for the mutex of upstream's controller.
func TestRenewalDuringRemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, renewals := &slowReconciler{}, NewRenewals()
		lease := NewPeerLease(slow, renewals, func() error { return nil })
		controller := reconcilers.New("apiserver-0", "192.0.2.1:6443", lease, 10*time.Second, nil)
		assert.NoError(t, controller.UpdatePeerEndpointLeases())
		began := time.Now()
		renewals.Stop()
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			controller.Stop()
			lease.AwaitRemoval()
		}()
		synctest.Wait()
		assert.ErrorIs(t, controller.UpdatePeerEndpointLeases(), errNoRenewal)
		<-stopped
		assert.Equal(t, time.Second, time.Since(began))
		assert.Equal(t, []string{"update", "stop", "remove", "destroy"}, slow.did)
	})
}
