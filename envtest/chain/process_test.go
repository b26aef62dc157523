package chain

import (
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/kubernetes/pkg/capabilities"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"

	"snowglobe.test/envtest/process"
)

func mustParse(t *testing.T, flags ...string) *Flags {
	t.Helper()
	parsed, err := ParseFlags(flags, Defaults{})
	require.NoError(t, err)
	return parsed
}

// TestCapabilities has a program that has set or only read the capabilities before
// the first server sets them, which upstream lets happen once in a process.
func TestCapabilities(t *testing.T) {
	t.Cleanup(capabilities.ResetForTest)
	for name, stranger := range map[string]func(){
		"set":  func() { capabilities.Setup(false, 5) },
		"read": func() { capabilities.Get() },
	} {
		capabilities.ResetForTest()
		stranger()
		before := capabilities.Get()
		member, err := process.Join(name, mustParse(t).Process(), io.Discard, nil)
		require.NoError(t, err)
		capabilities.Setup(true, 7) // as upstream does when it makes a server
		got := capabilities.Get()
		assert.True(t, got.AllowPrivileged && got.PerConnectionBandwidthLimitBytesPerSec == 7, "%s before: the server's capabilities are %+v", name, got)
		member.Leave()
		after := capabilities.Get()
		assert.Equal(t, before.AllowPrivileged, after.AllowPrivileged, "%s before: AllowPrivileged after the server", name)
		assert.Equal(t, before.PerConnectionBandwidthLimitBytesPerSec, after.PerConnectionBandwidthLimitBytesPerSec, "%s before: the bandwidth limit after the server", name)
	}
}

// TestRenewal makes the renewals of identity leases rare while there are servers, all of
// which agree on it.
func TestRenewal(t *testing.T) {
	before := controlplaneapiserver.IdentityLeaseRenewIntervalPeriod
	quiet, err := ParseFlags(nil, Defaults{WithoutHousekeeping: true})
	require.NoError(t, err)
	member, err := process.Join("quiet", quiet.Process(), io.Discard, nil)
	require.NoError(t, err)
	assert.Equal(t, rareRenewal, controlplaneapiserver.IdentityLeaseRenewIntervalPeriod, "how often leases are renewed")
	_, err = process.Join("busy", mustParse(t).Process(), io.Discard, nil)
	assert.ErrorContains(t, err, "housekeeping", "a server with housekeeping beside one without")
	member.Leave()
	assert.Equal(t, before, controlplaneapiserver.IdentityLeaseRenewIntervalPeriod, "how often leases are renewed afterwards")
}

// TestProcessFlags hands on what upstream keeps once in a process.
func TestProcessFlags(t *testing.T) {
	got := mustParse(t, "--feature-gates=WatchList=false", "--allow-privileged=false", "--max-connection-bytes-per-sec=7", "--contention-profiling", "-v=4").Process()
	assert.Equal(t, `feature gates "WatchList=false", --allow-privileged=false, --max-connection-bytes-per-sec=7`, got.String())
	assert.Equal(t, 4, got.Verbosity, "verbosity")
	assert.True(t, got.ContentionProfiling, "contention profiling")
}
