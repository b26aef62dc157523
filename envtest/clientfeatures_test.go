package envtest_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientfeatures "k8s.io/client-go/features"

	"snowglobe.test/envtest"
)

const watchListVariable = "KUBE_FEATURE_WatchListClient"

// TestClientFeatures has the environment decide about features of the clients of a program that
// links an API server, as about others'.
func TestClientFeatures(t *testing.T) {
	if os.Getenv(watchListVariable) == "false" {
		envtest.Start(t)
		assert.False(t, clientfeatures.FeatureGates().Enabled(clientfeatures.WatchListClient))
		return
	}
	assert.True(t, clientfeatures.FeatureGates().Enabled(clientfeatures.WatchListClient))
	program, err := os.Executable()
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), program, "-test.run=^TestClientFeatures$")
	command.Env = append(os.Environ(), watchListVariable+"=false")
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
