package chain

import "testing"

func TestParseAPIPath(t *testing.T) {
	tests := map[string]apiPath{
		"/":                                 {},
		"/healthz":                          {},
		"/api/v1":                           {},
		"/apis/apps/v1":                     {},
		"/api/v1/nodes":                     {resource: "nodes"},
		"/api/v1/namespaces/a":              {resource: "namespaces", name: "a"},
		"/api/v1/namespaces/a/pods":         {resource: "pods", namespace: "a"},
		"/api/v1/namespaces/a/status":       {resource: "namespaces", name: "a"},
		"/api/v1/watch/namespaces/a/pods/b": {resource: "pods", namespace: "a", name: "b"},
		"/apis/apps/v1/namespaces/a/deployments/b":          {resource: "deployments.apps", namespace: "a", name: "b"},
		"/apis/apps/v1/namespaces/a/deployments/b/scale":    {resource: "deployments.apps", namespace: "a", name: "b"},
		"/apis/storage.k8s.io/v1/csinodes/{name}":           {resource: "csinodes.storage.k8s.io", name: "{name}"},
		"/api/v1/namespaces/{namespace}/pods/{name}/proxy/": {resource: "pods", namespace: "{namespace}", name: "{name}"},
	}
	for path, want := range tests {
		if got := parseAPIPath(path); got != want {
			t.Errorf("%s is %+v, want %+v", path, got, want)
		}
	}
}
