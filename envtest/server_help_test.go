package envtest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
)

// ready asks the first server whether it is ready.
func ready(t testing.TB, cp *envtest.ControlPlane) bool {
	t.Helper()
	ready, _ := cp.Servers()[0].Ready(t.Context())
	return ready
}

// redChecks are those of the first server.
func redChecks(t testing.TB, cp *envtest.ControlPlane) []string {
	t.Helper()
	_, red := cp.Servers()[0].Ready(t.Context())
	return red
}

// hooksOf are the post-start hooks of the first server.
func hooksOf(cp *envtest.ControlPlane) []string {
	return cp.Faults().Names()["post-start hook"]
}

// heldHooks are those of the first server that are held.
func heldHooks(cp *envtest.ControlPlane) []string {
	var held []string
	for _, op := range cp.Faults().Held() {
		if name, ok := strings.CutPrefix(op.Point, "hook/"); ok && op.Server == "apiserver-0" {
			held = append(held, name)
		}
	}
	slices.Sort(held)
	return held
}

// crash crashes a server.
func crash(t *testing.T, server *envtest.Server) {
	t.Helper()
	require.NoError(t, server.Crash(t.Context()))
}

// inject adds a rule.
func inject(t testing.TB, cp *envtest.ControlPlane, rule string) *fault.Entry {
	t.Helper()
	entry, err := cp.Faults().Inject(rule)
	require.NoError(t, err)
	return entry
}
