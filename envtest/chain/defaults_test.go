package chain

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	genericfeatures "k8s.io/apiserver/pkg/features"
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

// TestHousekeepingIsADefault has flags bring back what is left out.
func TestHousekeepingIsADefault(t *testing.T) {
	for _, test := range []struct {
		flags []string
		kept  bool
	}{
		{kept: false},
		{flags: []string{
			"--watch-cache", "--feature-gates=UnknownVersionInteroperabilityProxy=true", "--enable-admission-plugins=MutatingAdmissionPolicy",
			"--enable-priority-and-fairness", "--etcd-compaction-interval=5m", "--etcd-count-metric-poll-period=1m", "--min-request-timeout=1800",
		}, kept: true},
	} {
		parsed, err := ParseFlags(test.flags, Defaults{WithoutHousekeeping: true})
		require.NoError(t, err)
		run := parsed.run
		assert.Equal(t, test.kept, parsed.gates.Enabled(genericfeatures.UnknownVersionInteroperabilityProxy))
		assert.Equal(t, test.kept, run.Etcd.EnableWatchCache)
		assert.Equal(t, test.kept, run.Features.EnablePriorityAndFairness)
		assert.Equal(t, test.kept, run.Etcd.StorageConfig.CompactionInterval != 0)
		assert.Equal(t, test.kept, run.Etcd.StorageConfig.CountMetricPollPeriod != 0)
		assert.Equal(t, test.kept, run.GenericServerRunOptions.MinRequestTimeout == 1800)
		assert.True(t, run.Admission.GenericAdmission.DefaultOffPlugins.Has("MutatingAdmissionPolicy"))
		assert.Equal(t, test.kept, len(run.Admission.GenericAdmission.EnablePlugins) != 0)
	}
}
