package envtest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"snowglobe.test/envtest"
)

// TestAuditLog has it written in either clock, and nothing left of what writes it.
func TestAuditLog(t *testing.T) {
	policy := writeFile(t, filepath.Join(t.TempDir(), "policy.yaml"), "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n")
	for clock, run := range map[string]func(*testing.T, ...envtest.Option){
		"real": func(t *testing.T, opts ...envtest.Option) {
			require.NoError(t, launched(t, opts...).Stop(t.Context()))
		},
		"virtual": func(t *testing.T, opts ...envtest.Option) {
			envtest.Simulate(t, func(*testing.T, *envtest.ControlPlane) {}, opts...)
		},
	} {
		t.Run(clock, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			log := filepath.Join(t.TempDir(), "audit.log")
			run(t, envtest.WithFlags("--audit-policy-file="+policy, "--audit-log-path="+log))
			events, err := os.ReadFile(log)
			require.NoError(t, err)
			assert.Contains(t, string(events), `"kind":"Event"`)
		})
	}
}
