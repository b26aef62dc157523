package envtest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
)

// TestOwnStoreClients bends the calls of upstream's own etcd clients: here the
// allocator of node ports, which keeps the ports that are taken under one key.
func TestOwnStoreClients(t *testing.T) {
	const ports = "/registry/ranges/servicenodeports"
	onBothStores(t, func(t *testing.T, cp *envtest.ControlPlane) {
		services := core(cp).Services("default")
		offer := func(name string) error {
			_, err := services.Create(t.Context(), &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80}}},
			}, metav1.CreateOptions{})
			return err
		}
		before := versionOf(t, cp, ports)
		require.NoError(t, offer("passes"))
		assert.Equal(t, before+1, versionOf(t, cp, ports))

		gate, err := cp.Faults().Gate("store/put key=" + ports)
		require.NoError(t, err)
		done := make(chan error, 1)
		go func() { done <- offer("held") }()
		waiting := awaitHeld(t, gate)
		waiting[0].Occurrence = 0
		assert.Equal(t, []fault.Operation{{Point: "store/put", Phase: fault.Before, Server: "apiserver-0", Key: ports}}, waiting)
		assert.Equal(t, before+1, versionOf(t, cp, ports), "held")
		gate.Release(1)
		require.NoError(t, <-done)
		assert.Equal(t, before+2, versionOf(t, cp, ports), "released")
		gate.Remove()

		remove := addRule(t, cp, "fail store/put key="+ports+" with=leader-changed times=1")
		assert.ErrorContains(t, offer("failed"), "etcdserver: leader changed")
		assert.Equal(t, before+2, versionOf(t, cp, ports), "failed")
		remove()

		remove = addRule(t, cp, "lose-reply store/put key="+ports+" with=request-timed-out times=1")
		assert.ErrorContains(t, offer("lost"), "etcdserver: request timed out")
		assert.Equal(t, before+3, versionOf(t, cp, ports), "the port is taken, and no service has it")
		remove()
	})
}

// TestServerLeases holds what one of two servers says of itself to the store. After
// a while the other one takes it for dead, and no client is sent to it any more.
func TestServerLeases(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		require.Len(t, settledEndpoints(t, cp), 2)
		gate, err := cp.Faults().Gate("store/put key=/registry/masterleases/ server=apiserver-1")
		require.NoError(t, err)
		awaitHeld(t, gate)
		assert.Equal(t, []string{"192.0.2.1"}, settledEndpoints(t, cp))
		gate.Remove()
		assert.Len(t, settledEndpoints(t, cp), 2)
	}, envtest.WithReplicas(2))
}

// TestCutDuringRenewal cuts the way to the store while upstream's own client has a
// call on it, for so long that the client would dial again only rarely. The end of
// the server does not wait for that: Simulate fails if anything is left.
func TestCutDuringRenewal(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		gate, err := cp.Faults().Gate("store/range key=/registry/peerserverleases/ server=apiserver-1")
		require.NoError(t, err)
		awaitHeld(t, gate)
		inject(t, cp, "partition store server=apiserver-1")
		gate.Remove()
		time.Sleep(80 * time.Second)
	}, envtest.WithReplicas(2))
}
