package chain

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAdvertise wants an address that works with the reconciler of endpoints, unless a flag
// gives one.
func TestAdvertise(t *testing.T) {
	for _, test := range []struct {
		flags    []string
		defaults Defaults
		want     string
	}{
		{want: "127.0.0.1"},
		{flags: []string{"--endpoint-reconciler-type=lease"}, want: "192.0.2.1"},
		{flags: []string{"--endpoint-reconciler-type=lease", "--advertise-address=198.51.100.7"}, want: "198.51.100.7"},
		{defaults: Defaults{Index: 1, Replicas: 2}, want: "192.0.2.2"},
		{flags: []string{"--endpoint-reconciler-type=none"}, defaults: Defaults{Index: 1, Replicas: 2}, want: "127.0.0.1"},
	} {
		parsed, err := ParseFlags(test.flags, test.defaults)
		require.NoError(t, err)
		assert.Equal(t, test.want, parsed.run.GenericServerRunOptions.AdvertiseAddress.String(), "%+v", test)
	}
}
