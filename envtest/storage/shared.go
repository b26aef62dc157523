package storage

// Shared is a store that belongs to the caller: a control plane on it neither starts nor stops
// it, so it may outlive the control plane or serve several.
type Shared struct{ Backend }
