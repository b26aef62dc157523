package envtest

import (
	"testing"
	"testing/synctest"
)

// simulate enters a bubble that belongs to the test.
func simulate(t *testing.T, f func(t *testing.T)) { synctest.Test(t, f) }
