//go:build go1.25

package client

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
)

// TestVirtualTime is refused.
func TestVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := Launch(t.Context())
		assert.ErrorContains(t, err, "envtest.Simulate")
	})
}
