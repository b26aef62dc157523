package envtest

// WithoutEdges leaves out whatever rules could bend, to measure what that costs.
func WithoutEdges() Option { return func(c *config) { c.unbent = true } }
