package upstream

import (
	"testing"

	"github.com/stretchr/testify/assert"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
)

func TestReplaceLogCheck(t *testing.T) {
	config := genericapiserver.NewConfig(codecs())
	paths := [][]healthz.HealthChecker{config.HealthzChecks, config.LivezChecks, config.ReadyzChecks}
	for _, checks := range paths {
		assert.Contains(t, checks, healthz.LogHealthz, "upstream has no such check there any more")
	}
	ReplaceLogCheck(config)
	for _, checks := range paths {
		assert.NotContains(t, checks, healthz.LogHealthz)
		assert.NoError(t, checks[1].Check(nil))
		assert.Equal(t, "log", checks[1].Name())
	}
}
