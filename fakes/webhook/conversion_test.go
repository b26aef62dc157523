package webhook_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/conversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"

	"snowglobe.test/fakes/stub"
	"snowglobe.test/fakes/webhook"
)

var widget = schema.GroupKind{Group: "example.com", Kind: "Widget"}

func serveConversion(t *testing.T, p place, hosts ...string) *webhook.Conversion {
	t.Helper()
	fake, err := webhook.ServeConversion(p, hosts...)
	require.NoError(t, err)
	stopAtEnd(t, fake)
	fake.Handle(widget, "v1", "v2", func(object *unstructured.Unstructured) error {
		size, _, err := unstructured.NestedInt64(object.Object, "size")
		if err != nil {
			return err
		}
		if size < 0 {
			return errors.New("the size is negative")
		}
		unstructured.RemoveNestedField(object.Object, "size")
		return unstructured.SetNestedField(object.Object, size*10, "sizeMillimeters")
	})
	fake.Handle(widget, "v2", "v1", nil)
	return fake
}

// newConverter is the API server's own for a CRD.
func newConverter(t *testing.T, p place, config apiextensionsv1.WebhookClientConfig) func(*unstructured.Unstructured, string) (*unstructured.Unstructured, error) {
	t.Helper()
	factory, err := conversion.NewCRConverterFactory(webhookutil.NewDefaultServiceResolver(), p.resolver())
	require.NoError(t, err)
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: widget.Group,
			Scope: apiextensionsv1.NamespaceScoped,
			Conversion: &apiextensionsv1.CustomResourceConversion{
				Strategy: apiextensionsv1.WebhookConverter,
				Webhook:  &apiextensionsv1.WebhookConversion{ClientConfig: &config, ConversionReviewVersions: []string{"v1"}},
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1"}, {Name: "v2"}, {Name: "v3"}},
		},
	}
	_, converter, err := factory.NewConverter(crd)
	require.NoError(t, err)
	return func(object *unstructured.Unstructured, version string) (*unstructured.Unstructured, error) {
		converted, err := converter.ConvertToVersion(object, schema.GroupVersion{Group: widget.Group, Version: version})
		if err != nil {
			return nil, err
		}
		return converted.(*unstructured.Unstructured), nil
	}
}

func newWidget(version string, size int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": widget.Group + "/" + version, "kind": widget.Kind, "size": size,
		"metadata": map[string]any{"name": "w", "namespace": "default", "uid": "1"},
	}}
}

func TestConversion(t *testing.T) {
	garbage := func(response *apiextensionsv1.ConversionResponse) {
		response.ConvertedObjects[0] = runtime.RawExtension{Raw: []byte(`"garbage"`)}
	}
	everywhere(t, func(t *testing.T, p place) {
		fake := serveConversion(t, p)
		convert := newConverter(t, p, fake.ClientConfig("/convert"))
		v2, err := convert(newWidget("v1", 3), "v2")
		require.NoError(t, err)
		size, _, _ := unstructured.NestedInt64(v2.Object, "sizeMillimeters")
		assert.EqualValues(t, 30, size)
		assert.Equal(t, "w", v2.GetName())
		assert.Equal(t, "/convert", fake.Requests.Calls()[0].Request.HTTP.Path)
		v1, err := convert(v2, "v1")
		require.NoError(t, err)
		assert.Equal(t, "example.com/v1", v1.GetAPIVersion())

		_, err = convert(newWidget("v1", -1), "v2")
		assert.ErrorContains(t, err, `convert object 0: Widget "w" to example.com/v2: the size is negative`)
		_, err = convert(newWidget("v1", 1), "v3")
		assert.ErrorContains(t, err, `this webhook can't convert example.com/v1 Widget "w" to example.com/v3: teach it with Handle`)

		for _, c := range []struct {
			name string
			rule webhook.ConversionRule
			want string
		}{
			{"wrong uid", webhook.ConversionRule{Answer: fake.Distort(webhook.WrongUID)}, "expected response.uid="},
			{"wrong count", webhook.ConversionRule{Answer: fake.Distort(webhook.DropLast)}, "returned 0 objects, expected 1"},
			{"renamed", webhook.ConversionRule{Answer: fake.Distort(webhook.Rename)}, "must have the same name: w != not-w"},
			{"garbage", webhook.ConversionRule{Answer: fake.Distort(garbage)}, "cannot unmarshal string"},
			{"not converted", webhook.ConversionRule{Answer: fake.Distort(func(response *apiextensionsv1.ConversionResponse) {
				response.ConvertedObjects[0] = runtime.RawExtension{Object: newWidget("v1", 1)}
			})}, "invalid groupVersion"},
		} {
			remove := fake.Requests.Use(c.rule)
			_, err := convert(newWidget("v1", 1), "v2")
			assert.ErrorContains(t, err, c.want, c.name)
			remove()
		}
		fake.Requests.Reply(apiextensionsv1.ConversionResponse{}, stub.ErrBreak)
		_, err = convert(newWidget("v1", 1), "v2")
		assert.ErrorContains(t, err, "conversion webhook for example.com/v1, Kind=Widget failed")
	})
}

// TestRenameOfGarbage leaves what is no object as it is.
func TestRenameOfGarbage(t *testing.T) {
	response := apiextensionsv1.ConversionResponse{ConvertedObjects: []runtime.RawExtension{{Raw: []byte("1")}}}
	webhook.Rename(&response)
	assert.Equal(t, "1", string(response.ConvertedObjects[0].Raw))
	webhook.DropLast(&response)
	webhook.DropLast(&response)
	assert.Empty(t, response.ConvertedObjects)
}

func TestConversionAsASlowService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := memory()
		fake := serveConversion(t, p, "widgets.default.svc")
		_, err := fake.ServiceClientConfig("other", "widgets", "")
		require.ErrorContains(t, err, "no certificate for widgets.other.svc")
		config, err := fake.ServiceClientConfig("default", "widgets", "/convert")
		require.NoError(t, err)
		fake.Requests.Use(webhook.ConversionRule{Delay: time.Minute})
		began := time.Now()
		_, err = newConverter(t, p, config)(newWidget("v1", 1), "v2")
		assert.NoError(t, err, "upstream has no timeout for conversions")
		assert.Equal(t, time.Minute, time.Since(began))
	})
}

func TestConversionRefuses(t *testing.T) {
	review := func(request string) string {
		return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":` + request + `}`
	}
	const v1 = `{"apiVersion":"example.com/v1","kind":"Widget"}`
	requests := append(badEnvelopes("apiextensions.k8s.io/v1", "ConversionReview", `conversionReviewVersions: ["v1"]`),
		badRequest{name: "no request", body: review("null"), want: "the review has no request"},
		badRequest{name: "no uid", body: review(`{}`), want: "the request has no uid"},
		badRequest{name: "no objects", body: review(`{"uid":"1","objects":[]}`), want: "the request has no objects"},
		badRequest{name: "no version", body: review(`{"uid":"1","objects":[` + v1 + `]}`), want: `the desired apiVersion is ""`},
		badRequest{name: "core version", body: review(`{"uid":"1","desiredAPIVersion":"v1","objects":[` + v1 + `]}`), want: `the desired apiVersion is "v1"`},
		badRequest{name: "no object", body: review(`{"uid":"1","desiredAPIVersion":"example.com/v2","objects":[{}]}`), want: "object 0 of the request"},
		badRequest{name: "same version", body: review(`{"uid":"1","desiredAPIVersion":"example.com/v1","objects":[` + v1 + `]}`), want: "want another version"},
		badRequest{name: "other group", body: review(`{"uid":"1","desiredAPIVersion":"other.com/v2","objects":[` + v1 + `]}`), want: "want another version of other.com"},
	)
	everywhere(t, func(t *testing.T, p place) {
		fake := serveConversion(t, p)
		refuses(t, fake.URL(), rawClient(t, fake.CA(), p), requests, func() (int, error) {
			calls := fake.Requests.Calls()
			return len(calls), calls[len(calls)-1].Err
		})
	})
}
