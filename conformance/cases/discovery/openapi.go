package discovery

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/onsi/gomega"

	"snowglobe.test/conformance/suite"
)

var openAPICases = []suite.Case{
	{ID: "S14/openapi-v2-is-served", Level: suite.Core, Test: openAPIV2IsServed,
		Source:  "k8s.io/kube-aggregator/pkg/controllers/openapi/aggregator",
		Promise: "/openapi/v2 describes the paths and types of every server of the chain, in JSON and in protobuf."},
	{ID: "S14/openapi-v2-is-cacheable", Level: suite.Core, Test: openAPIV2IsCacheable,
		Source:  "k8s.io/kube-openapi/pkg/handler/handler.go",
		Promise: "/openapi/v2 has an ETag; a request that sends it back is answered 304."},
	{ID: "S14/openapi-v3-is-served", Level: suite.Core, Test: openAPIV3IsServed,
		Source: "k8s.io/kube-openapi/pkg/handler3/handler.go",
		Promise: "/openapi/v3 lists an OpenAPI 3 document for each group version, at a path with its hash, so that " +
			"clients may cache it for ever."},
	{ID: "S10/openapi-v3-follows-a-CRD", Level: suite.Core, Test: openAPIV3FollowsACRD,
		Source: "k8s.io/apiextensions-apiserver/pkg/controller/openapiv3 and " +
			"k8s.io/kube-aggregator/pkg/controllers/openapiv3",
		Promise: "A CRD's schema is published in the OpenAPI v3 document of its group version, and disappears with " +
			"the CRD."},
}

// swagger is the part of an OpenAPI v2 document that the cases read.
type swagger struct {
	Swagger     string
	Info        struct{ Title, Version string }
	Paths       map[string]any
	Definitions map[string]any
}

func openAPIV2IsServed(ctx context.Context, t *suite.T) {
	document := suite.GetJSON[swagger](ctx, t, "/openapi/v2")
	t.Expect(document.Swagger).To(gomega.Equal("2.0"))
	t.Expect(document.Info.Title).To(gomega.Equal("Kubernetes"))
	for _, path := range []string{"/api/v1/namespaces/{namespace}/pods", "/apis/apps/v1/deployments",
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/apis/apiregistration.k8s.io/v1/apiservices"} {
		t.Expect(document.Paths[path]).NotTo(gomega.BeNil(), "path %s is not described", path)
	}
	t.Expect(document.Definitions["io.k8s.api.core.v1.Pod"]).NotTo(gomega.BeNil(), "Pod is not described")
	const protobuf = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
	binary := t.AnsweredTo(ctx, suite.Request{Path: "/openapi/v2", Accept: protobuf}, http.StatusOK)
	t.Expect(binary.Header.Get("Content-Type")).To(gomega.Equal(protobuf))
	// The first field of the document is its version, 2.0.
	t.Expect(bytes.HasPrefix(binary.Body, []byte("\x0a\x032.0"))).To(gomega.BeTrue(), "not a protobuf document: %.20q",
		binary.Body)
}

func openAPIV2IsCacheable(ctx context.Context, t *suite.T) {
	// Other users' CRDs may change the document between two requests.
	t.Eventually(ctx, func() int {
		etag := t.Get(ctx, "/openapi/v2").Header.Get("ETag")
		t.Expect(etag).To(gomega.MatchRegexp(`^".+"$`))
		return t.Ask(ctx, suite.Request{Path: "/openapi/v2", IfNoneMatch: etag}).Code
	}).WithPolling(time.Second).Should(gomega.Equal(http.StatusNotModified))
}

// openAPIIndex returns the URL of each OpenAPI v3 document.
func openAPIIndex(ctx context.Context, t *suite.T) map[string]struct{ ServerRelativeURL string } {
	type index struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	return suite.GetJSON[index](ctx, t, "/openapi/v3").Paths
}

// openAPI is the part of an OpenAPI v3 document that the cases read.
type openAPI struct {
	OpenAPI    string
	Paths      map[string]any
	Components struct {
		Schemas map[string]struct {
			Properties map[string]struct {
				Description string
				Properties  map[string]struct{ Type, Description string }
			}
		}
	}
}

func openAPIV3IsServed(ctx context.Context, t *suite.T) {
	for _, groupVersion := range builtIn {
		t.Eventually(ctx, openAPIIndex).WithArguments(t).
			Should(gomega.HaveKey(strings.TrimPrefix(groupPath(groupVersion), "/")))
	}
	url := openAPIIndex(ctx, t)["apis/apps/v1"].ServerRelativeURL
	t.Expect(url).To(gomega.MatchRegexp(`^/openapi/v3/apis/apps/v1\?hash=\w+$`))
	got := t.Get(ctx, url)
	document := suite.JSON[openAPI](t, got)
	t.Expect(document.OpenAPI).To(gomega.HavePrefix("3.0"))
	t.Expect(document.Paths).To(gomega.HaveKey("/apis/apps/v1/namespaces/{namespace}/deployments"))
	t.Expect(got.Header.Get("Cache-Control")).To(gomega.ContainSubstring("immutable"))
	_, hash, _ := strings.Cut(url, "=")
	t.Expect(got.Header.Get("ETag")).To(gomega.Equal(`"` + hash + `"`))
	t.AnsweredTo(ctx, suite.Request{Path: "/openapi/v3/apis/apps/v1", IfNoneMatch: `"` + hash + `"`},
		http.StatusNotModified)
}

func openAPIV3FollowsACRD(ctx context.Context, t *suite.T) {
	w := t.Install(ctx, t.WidgetCRD(suite.WithSpec(func(spec *suite.Schema) {
		spec.Properties["size"] = suite.Schema{Type: "integer", Description: "edge length in mm"}
	})))
	key := strings.TrimPrefix(groupPath(w.Resource.GroupVersion().String()), "/")
	t.Eventually(ctx, openAPIIndex).WithArguments(t).Should(gomega.HaveKey(key))
	document := suite.GetJSON[openAPI](ctx, t, "/openapi/v3/"+key)
	t.Expect(document.Paths).To(gomega.And(gomega.HaveKey(w.Path), gomega.HaveKey(w.Path+"/{name}")))
	found := ""
	for name, schema := range document.Components.Schemas {
		if strings.HasSuffix(name, ".v1.Widget") {
			found = schema.Properties["spec"].Properties["size"].Description
		}
	}
	t.Expect(found).To(gomega.Equal("edge length in mm"))
	w.RemoveCRD(ctx)
	t.Eventually(ctx, openAPIIndex).WithArguments(t).ShouldNot(gomega.HaveKey(key))
}
