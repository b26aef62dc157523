package envtest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
)

// ready asks the first server whether it is ready.
func ready(t *testing.T, cp *envtest.ControlPlane) bool {
	t.Helper()
	ready, _ := cp.Servers()[0].Ready(t.Context())
	return ready
}

// redChecks are those of the first server.
func redChecks(t *testing.T, cp *envtest.ControlPlane) []string {
	t.Helper()
	_, red := cp.Servers()[0].Ready(t.Context())
	return red
}

// hooksOf are the post-start hooks of the first server.
func hooksOf(cp *envtest.ControlPlane) []string {
	all, _ := cp.Servers()[0].Hooks()
	return all
}

// heldHooks are those of the first server that are held.
func heldHooks(cp *envtest.ControlPlane) []string {
	_, held := cp.Servers()[0].Hooks()
	return held
}

// crash crashes a server.
func crash(t *testing.T, server *envtest.Server) {
	t.Helper()
	require.NoError(t, server.Crash(t.Context()))
}

// inject adds a rule.
func inject(t *testing.T, cp *envtest.ControlPlane, rule string) *fault.Entry {
	t.Helper()
	entry, err := cp.Faults().Inject(rule)
	require.NoError(t, err)
	return entry
}
