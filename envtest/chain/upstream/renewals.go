package upstream

import (
	"context"
	"errors"
)

// Renewals ends when the server begins to shut down. Upstream renews the leases by
// which a server tells that it is alive under a mutex that its pre-shutdown hooks
// wait for; but a renewal may wait for time to pass, for admission that is not
// ready or a store that is gone, and virtual time stands still while a goroutine
// waits for a mutex. So a server that shuts down breaks off the renewals under way
// (identitylease.go, peerlease.go).
type Renewals struct {
	ctx context.Context
	end context.CancelCauseFunc
}

var errNoRenewal = errors.New("the server is shutting down and does not renew its lease")

// NewRenewals returns the Renewals of one server.
func NewRenewals() *Renewals {
	ctx, cancel := context.WithCancelCause(context.Background())
	return &Renewals{ctx, cancel}
}

// Stop breaks off the renewals under way and refuses later ones.
func (r *Renewals) Stop() { r.end(errNoRenewal) }
