package envtest

// WithoutInjectors leaves out whatever asks rules, to measure what that costs.
func WithoutInjectors() Option { return func(c *config) { c.withoutFaults = true } }

// ReadCRDs lets tests try readCRDs.
var ReadCRDs = readCRDs

// Name returns the control plane's name, unique in the process.
func (cp *ControlPlane) Name() string { return cp.name }
