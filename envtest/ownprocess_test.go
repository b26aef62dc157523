package envtest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest"
)

// TestNoFile starts a control plane where no file can be made.
func TestNoFile(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	_, err := os.MkdirTemp("", "")
	require.Error(t, err, "files can be made: the test would show nothing")
	envtest.Start(t)
}

// TestRemarksOfFlags has what kube-apiserver says of a flag on stderr in the control plane's log.
func TestRemarksOfFlags(t *testing.T) {
	t.Parallel()
	cp := envtest.Start(t, envtest.WithFlags("--apiserver-count=1"))
	assert.Contains(t, cp.Log(), "Flag --apiserver-count has been deprecated")
}
