package chain

import (
	"testing"

	"github.com/stretchr/testify/assert"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

func TestResourceAt(t *testing.T) {
	infos := genericapiserver.NewRequestInfoResolver(genericapiserver.NewConfig(codecs()))
	tests := map[string]string{
		"/":                                 "",
		"/healthz":                          "",
		"/api/v1":                           "",
		"/apis/apps/v1":                     "",
		"/api/v1/watch":                     "",
		"/api/v1/nodes":                     "nodes",
		"/api/v1/namespaces/a":              "namespaces",
		"/api/v1/namespaces/a/pods":         "pods",
		"/api/v1/namespaces/a/status":       "namespaces/status",
		"/api/v1/watch/namespaces/a/pods/b": "pods",
		"/apis/apps/v1/namespaces/a/deployments/b":          "deployments.apps",
		"/apis/apps/v1/namespaces/a/deployments/b/scale":    "deployments.apps/scale",
		"/apis/storage.k8s.io/v1/csinodes/{name}":           "csinodes.storage.k8s.io",
		"/api/v1/namespaces/{namespace}/pods/{name}/proxy/": "pods/proxy",
	}
	for path, want := range tests {
		assert.Equal(t, want, resourceAt(infos, path), path)
	}
}
