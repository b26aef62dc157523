package envtest

import (
	"context"

	"snowglobe.test/envtest/trace"
)

// AdminUser is who tests are by default.
const AdminUser = trace.AdminUser

// WithoutInjectors leaves out whatever asks rules, to measure what that costs.
func WithoutInjectors() Option { return func(c *config) { c.withoutFaults = true } }

// WithPromptHooks has hooks not wait in virtual time, as they do not in real time.
func WithPromptHooks() Option { return func(c *config) { c.promptHooks = true } }

// ReadCRDs lets tests read definitions.
var ReadCRDs = crdPlaces{}.read

// Patience lets tests try patience.
var Patience = patience

// LoadPKI returns the authority's certificate of a folder of WithPKI, and makes the files.
func LoadPKI(ctx context.Context, dir string) ([]byte, error) {
	cp := &ControlPlane{}
	if err := cp.loadPKI(ctx, dir); err != nil {
		return nil, err
	}
	return cp.authority.CertPEM(), nil
}

// Name returns the control plane's name, unique in the process.
func (cp *ControlPlane) Name() string { return cp.name }

// TimedCaches are the names of those that a Reset empties.
func (cp *ControlPlane) TimedCaches() []string { return cp.restoreServers()[0].Caches.Names() }

// Unsettled is why Settle has given up.
var Unsettled = unsettled

// Moved is what Settle says of a store that does not stand still.
func (cp *ControlPlane) Moved(before, now int64) string { return cp.moved(before, now) }
