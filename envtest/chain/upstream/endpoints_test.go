package upstream

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
)

// slowEndpoints reconciles for a while; the store answers late.
type slowEndpoints struct {
	EndpointReconciler
	did []string
}

func (e *slowEndpoints) ReconcileEndpoints(string, net.IP, []corev1.EndpointPort, bool) error {
	time.Sleep(time.Minute)
	e.did = append(e.did, "reconcile")
	return nil
}

func (e *slowEndpoints) RemoveEndpoints(string, net.IP, []corev1.EndpointPort) error {
	e.did = append(e.did, "remove")
	return nil
}

func (e *slowEndpoints) Destroy() { e.did = append(e.did, "destroy") }

// TestEndpointsTurn removes endpoints while they are reconciled. Time passes
// meanwhile, and the end of the server ends the wait.
func TestEndpointsTurn(t *testing.T) {
	for name, ended := range map[string]error{"waits": nil, "server ends": errors.New("the server has ended")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, end := context.WithCancelCause(t.Context())
				slow, began := &slowEndpoints{}, time.Now()
				endpoints := NewEndpoints(server, slow, func() error { return nil })
				reconciled := make(chan error, 1)
				go func() { reconciled <- endpoints.ReconcileEndpoints("kubernetes", nil, nil, false) }()
				synctest.Wait()
				want, wait := []string{"reconcile", "remove"}, time.Minute
				if ended != nil {
					want, wait = []string{"reconcile"}, 10*time.Second
					time.AfterFunc(wait, func() { end(ended) })
				}
				assert.ErrorIs(t, endpoints.RemoveEndpoints("kubernetes", nil, nil), ended)
				assert.Equal(t, wait, time.Since(began))
				assert.NoError(t, <-reconciled)
				assert.Equal(t, want, slow.did)
				end(nil)
			})
		})
	}
}

// TestEndpointsWithoutStore does nothing that would wait for a store that is gone.
func TestEndpointsWithoutStore(t *testing.T) {
	gone, slow := errors.New("gone"), &slowEndpoints{}
	endpoints := NewEndpoints(t.Context(), slow, func() error { return gone })
	assert.Equal(t, gone, endpoints.RemoveEndpoints("kubernetes", nil, nil))
	assert.Equal(t, gone, endpoints.ReconcileEndpoints("kubernetes", nil, nil, true))
	endpoints.Destroy()
	endpoints.Destroy()
	assert.Equal(t, []string{"destroy"}, slow.did)
}
