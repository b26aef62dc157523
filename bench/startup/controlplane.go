package startup

import (
	"snowglobe.test/bench/measure"
	"snowglobe.test/envtest"
	"snowglobe.test/envtest/storage/embedded"
)

// OnStore returns the options of a control plane on a new store.
func OnStore(kind string) []envtest.Option {
	if kind == measure.StoreEmbedded {
		return []envtest.Option{envtest.WithStore(embedded.New(embedded.Config{}))}
	}
	return nil
}
