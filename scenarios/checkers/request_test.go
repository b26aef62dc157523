package checkers

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestParseRequest(t *testing.T) {
	for _, test := range []struct{ method, uri, want string }{
		{"GET", "/api/v1/pods", "list pods"},
		{"GET", "/api/v1/namespaces/a/pods?limit=5", "list pods a"},
		{"GET", "/api/v1/namespaces/a/pods/x", "get pods a/x"},
		{"GET", "/api/v1/namespaces/a/pods/x/log", "get pods/log a/x"},
		{"GET", "/api/v1/namespaces/a/pods?watch=1", "watch pods a"},
		{"GET", "/api/v1/watch/namespaces/a/pods/x", "watch pods a/x"},
		{"GET", "/api/v1/namespaces", "list namespaces"},
		{"DELETE", "/api/v1/namespaces/a", "delete namespaces a"},
		{"PUT", "/api/v1/namespaces/a/finalize", "update namespaces/finalize a"},
		{"PATCH", "/api/v1/namespaces/a/status", "patch namespaces/status a"},
		{"POST", "/apis/apps/v1/namespaces/a/deployments", "create deployments.apps a"},
		{"PATCH", "/apis/apps/v1/namespaces/a/deployments/x/scale", "patch deployments.apps/scale a/x"},
		{"DELETE", "/apis/example.com/v1/glaciers", "deletecollection glaciers.example.com"},
		{"GET", "/apis/example.com/v1/glaciers/x", "get glaciers.example.com x"},
		{"GET", "/apis/example.com/v1", ""},
		{"GET", "/api/v1", ""},
		{"GET", "/api/v1/", ""},
		{"GET", "/readyz", ""},
		{"GET", "not a path", ""},
		{"OPTIONS", "/api/v1/pods", ""},
	} {
		r, ok := parseRequest(test.method, test.uri)
		assert.Equal(t, test.want != "", ok, test.uri)
		if ok {
			assert.Equal(t, test.want, r.String(), test.uri)
		}
	}
}

// The table is that of the API concepts page.
func TestFreshness(t *testing.T) {
	const list, get = "/api/v1/pods", "/api/v1/namespaces/a/pods/x"
	for uri, want := range map[string]freshness{
		list:                                consistent,
		list + "?limit=5":                   consistent,
		list + "?resourceVersion=":          consistent,
		list + "?resourceVersion=0":         cached,
		list + "?resourceVersion=0&limit=5": cached,
		list + "?resourceVersion=7":         cached,
		list + "?resourceVersion=7&limit=5": exact,
		list + "?resourceVersion=7&resourceVersionMatch=Exact":                exact,
		list + "?resourceVersion=7&resourceVersionMatch=NotOlderThan":         cached,
		list + "?resourceVersion=0&resourceVersionMatch=NotOlderThan":         cached,
		list + "?limit=5&continue=token":                                      continued,
		list + "?resourceVersion=7&limit=5&resourceVersionMatch=NotOlderThan": cached,
		get:                        consistent,
		get + "?resourceVersion=0": cached,
		get + "?resourceVersion=7": cached,
	} {
		r, ok := parseRequest("GET", uri)
		assert.True(t, ok, uri)
		fresh, _ := r.freshness()
		assert.Equal(t, want, fresh, uri)
	}
}

func TestScope(t *testing.T) {
	of := func(uri string) scope {
		r, ok := parseRequest("GET", uri)
		assert.True(t, ok, uri)
		return scopeOf(r)
	}
	pod := func(namespace, name string) key { return key{resource{"", "pods"}, namespace, name} }
	s := of("/api/v1/pods?fieldSelector=metadata.namespace%3Da,metadata.name%3Dx")
	assert.True(t, s.all())
	assert.True(t, s.covers(pod("a", "x")))
	assert.False(t, s.covers(pod("b", "x")))
	assert.False(t, s.covers(pod("a", "y")))
	assert.False(t, of("/api/v1/pods?fieldSelector=spec.nodeName%3Dn").all())
	assert.False(t, of("/api/v1/pods?fieldSelector=metadata.name%21%3Dn").all())
	assert.False(t, of("/api/v1/pods?shardSelector=x").all())
	assert.False(t, of("/api/v1/pods?fieldSelector=x").all(), "what it selects is unknown")
	assert.False(t, of("/api/v1/pods?labelSelector=a+in+b").all(), "what it selects is unknown")
	s = of("/api/v1/namespaces/a/pods?labelSelector=app+in+(ice,snow),!old")
	assert.False(t, s.all())
	assert.True(t, s.selects(Object{Labels: "app=snow"}))
	assert.False(t, s.selects(Object{Labels: "app=snow,old="}))
	assert.False(t, s.selects(Object{}))
}
