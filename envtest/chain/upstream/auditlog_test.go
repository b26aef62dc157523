package upstream

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
)

// TestAuditLogs finds the file behind each way to write it, and ends its goroutine.
func TestAuditLogs(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	policy := filepath.Join("testdata", "audit.yaml")
	for _, mode := range []string{options.ModeBatch, options.ModeBlocking} {
		for _, truncated := range []bool{false, true} {
			audit := options.NewAuditOptions()
			audit.PolicyFile = policy
			audit.LogOptions.Path = filepath.Join(t.TempDir(), "audit.log")
			audit.LogOptions.BatchOptions.Mode = mode
			audit.LogOptions.TruncateOptions.Enabled = truncated
			config := &genericapiserver.Config{}
			require.NoError(t, audit.ApplyTo(config))
			logs := AuditLogs(config.AuditBackend)
			require.Len(t, logs, 1, "%s, truncated %t", mode, truncated)
			_, err := logs[0].Write([]byte("{}\n"))
			assert.NoError(t, err)
			assert.NoError(t, EndAuditLog(logs[0]))
			assert.NoError(t, EndAuditLog(logs[0]), "twice")
			_, err = logs[0].Write([]byte("late\n"))
			assert.NoError(t, err)
			assert.NoError(t, logs[0].Close())
		}
	}
	assert.Empty(t, AuditLogs(nil))
}
