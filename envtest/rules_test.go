package envtest_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/virtualtime"
	"snowglobe.test/internal/pages"
)

// TestUnfired stops a control plane with a rule that has never fired.
func TestUnfired(t *testing.T) {
	const rule = "fail store/put resource=pods with=unavailable"
	idle := func(context.Context, *envtest.ControlPlane) error { return nil }
	err := envtest.SimulateContext(idle, envtest.WithFaults(rule))
	require.EqualError(t, err, `the rule "`+rule+`" never fired; remove it, or mark it optional`)
	pages.Troubleshooting(t, "..", err.Error())
	assert.NoError(t, envtest.SimulateContext(idle, envtest.WithFaults(rule+" optional")))
	_, isOfRule := errors.AsType[*fault.UnfiredError](err)
	assert.True(t, isOfRule, "callers can leave it out")
}

// TestErrorsNameRules has a start and a stop fail because of a rule.
func TestErrorsNameRules(t *testing.T) {
	require.NoError(t, virtualtime.Bubble(func() error {
		_, err := envtest.Launch(context.Background(), envtest.WithFaults("fail http/create resource=priorityclasses.scheduling.k8s.io with=500"))
		assert.ErrorContains(t, err, `the rule "fail http/create resource=priorityclasses.scheduling.k8s.io with=500" has fired`)
		assert.ErrorContains(t, err, "times, at last at http/create priorityclasses.scheduling.k8s.io")

		cp, err := envtest.Launch(context.Background(), envtest.WithFaults("drop signal/NotAcceptingNewRequest"))
		require.NoError(t, err)
		assert.ErrorContains(t, cp.Stop(context.Background()), `the rule "drop signal/NotAcceptingNewRequest" has fired 1 times, at last at signal/NotAcceptingNewRequest on apiserver-0`)
		return nil
	}))
}

// TestCompact compacts the store twice at one revision, and once below a rule.
func TestCompact(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		configMaps := core(cp).ConfigMaps("default")
		first, err := configMaps.List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		create(t, cp, "a")
		require.NoError(t, cp.Compact(t.Context()))
		require.NoError(t, cp.Compact(t.Context()))
		client, err := cp.Store().Client()
		require.NoError(t, err)
		defer func() { _ = client.Close() }()
		before, err := strconv.ParseInt(first.ResourceVersion, 10, 64)
		require.NoError(t, err)
		_, err = client.KV.Get(t.Context(), "/", clientv3.WithRev(before))
		assert.ErrorIs(t, err, rpctypes.ErrCompacted)

		entry, err := cp.Faults().Inject("compact store/range resource=configmaps")
		require.NoError(t, err)
		for range 2 {
			_, err = configMaps.Get(t.Context(), "a", metav1.GetOptions{})
			assert.NoError(t, err)
		}
		assert.Equal(t, 2, entry.Fired())
		entry.Remove()
		time.Sleep(time.Second)
	})
}
