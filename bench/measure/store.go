package measure

import "fmt"

// The stores to measure on. Each control plane gets an empty one.
const (
	StoreMemory   = "memory"
	StoreEmbedded = "embedded" // an etcd in the process, in a temporary folder
)

// StoreUsage is what the help says of them.
const StoreUsage = "memory, or embedded, which takes 128 MB in the temporary folder (default memory)"

// CheckStore returns an error for a kind of store that OnStore does not know.
func CheckStore(kind string) error {
	switch kind {
	case StoreMemory, StoreEmbedded:
		return nil
	}
	return fmt.Errorf("store %q is unknown; use %s or %s", kind, StoreMemory, StoreEmbedded)
}
