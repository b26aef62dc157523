package consumer

import (
	"testing"

	"snowglobe.test/scenarios"
)

// TestWatchCache tells a story about the watch cache as a script.
func TestWatchCache(t *testing.T) { scenarios.Test(t, "testdata/watchcache.txtar") }
