package child

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestEnvironment(t *testing.T) {
	for _, name := range []string{"KUBEBUILDER_ASSETS", "TEST_ASSET_ETCD", "USE_EXISTING_CLUSTER", variable, "KEPT"} {
		t.Setenv(name, "x")
	}
	got := strings.Join(environment(), "\n")
	for name, want := range map[string]bool{"KUBEBUILDER_ASSETS=": false, "TEST_ASSET_ETCD=": false, "USE_EXISTING_CLUSTER=": false, variable + "=": false, "KEPT=": true} {
		assert.Equal(t, want, strings.Contains(got, name), "%s in the environment of a child", name)
	}
}
