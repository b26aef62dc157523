package webhook

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"snowglobe.test/fakes/stub"
)

// Conversion is the conversion webhook of custom resources. By itself it converts what
// Handle and HandleRest have taught it, and fails for the rest.
type Conversion struct {
	server
	// Requests decides the answers and records the calls. A UID is added to answers
	// that have none.
	Requests *stub.Table[ConversionRequest, ConversionAnswer]

	mu          sync.Mutex
	conversions map[conversion]func(*unstructured.Unstructured) error
	rest        func(*unstructured.Unstructured) error // for all others; nil refuses them
}

// conversion is a way from one version of a kind to another.
type conversion struct {
	from schema.GroupVersionKind
	to   string // version
}

// ConversionRequest is what a conversion webhook is asked.
type ConversionRequest struct {
	HTTP HTTP
	apiextensionsv1.ConversionRequest
}

// ConversionAnswer is what it answers.
type ConversionAnswer = apiextensionsv1.ConversionResponse

// ConversionRule says how some requests are answered.
type ConversionRule = stub.Rule[ConversionRequest, ConversionAnswer]

// ServeConversion serves a conversion webhook with a certificate for the hosts, each a
// DNS name or an IP; without any, for the host of the listener. The listener is the
// webhook's from now on, also if ServeConversion fails.
func ServeConversion(l net.Listener, hosts ...string) (*Conversion, error) {
	c := &Conversion{conversions: map[conversion]func(*unstructured.Unstructured) error{}}
	c.Requests = stub.NewTable(
		func(_ context.Context, request ConversionRequest) (ConversionAnswer, error) {
			return c.Convert(request.ConversionRequest), nil
		})
	return c, c.serve(l, apiextensionsv1.SchemeGroupVersion.WithKind("ConversionReview"), apiextensionsv1.AddToScheme,
		`conversionReviewVersions: ["v1"]`, c.handle, hosts)
}

// Handle teaches the webhook to convert a kind from one version, such as v1alpha1, to
// another. The function is called for each object, whose apiVersion is the new one
// already; nil changes nothing else. The objects come from the API server and are to
// keep their metadata, apart from labels and annotations.
func (c *Conversion) Handle(kind schema.GroupKind, from, to string, convert func(*unstructured.Unstructured) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conversions[conversion{kind.WithVersion(from), to}] = orNothing(convert)
}

// HandleRest teaches the webhook to convert all that Handle does not, in the same way.
func (c *Conversion) HandleRest(convert func(*unstructured.Unstructured) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rest = orNothing(convert)
}

// orNothing is a conversion that changes nothing else, if there is none.
func orNothing(convert func(*unstructured.Unstructured) error) func(*unstructured.Unstructured) error {
	if convert == nil {
		return func(*unstructured.Unstructured) error { return nil }
	}
	return convert
}

// Convert answers a request as the webhook does by itself. Rules use it to change an
// answer; see Distort.
func (c *Conversion) Convert(request apiextensionsv1.ConversionRequest) ConversionAnswer {
	response := ConversionAnswer{UID: request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for i, object := range request.Objects {
		converted, err := c.convert(object.Raw, request.DesiredAPIVersion)
		if err != nil {
			return ConversionAnswer{UID: request.UID, Result: metav1.Status{
				Status: metav1.StatusFailure, Message: fmt.Sprintf("convert object %d: %v", i, err)}}
		}
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Raw: converted})
	}
	return response
}

func (c *Conversion) convert(object []byte, desired string) ([]byte, error) {
	var u unstructured.Unstructured
	if err := u.UnmarshalJSON(object); err != nil {
		return nil, err
	}
	to, err := schema.ParseGroupVersion(desired)
	if err != nil {
		return nil, err
	}
	from := u.GroupVersionKind()
	c.mu.Lock()
	convert := c.conversions[conversion{from, to.Version}]
	if convert == nil {
		convert = c.rest
	}
	c.mu.Unlock()
	if convert == nil || from.Group != to.Group {
		return nil, fmt.Errorf("this webhook can't convert %s %s %q to %s: teach it with Handle", u.GetAPIVersion(), from.Kind, u.GetName(), desired)
	}
	u.SetAPIVersion(desired)
	if err := convert(&u); err != nil {
		return nil, fmt.Errorf("%s %q to %s: %w", from.Kind, u.GetName(), desired, err)
	}
	encoded, err := u.MarshalJSON()
	return bytes.TrimSpace(encoded), err
}

// Distort is the Answer of a rule that converts as the webhook does by itself, and then
// changes the answer: with WrongUID, DropLast or Rename, or with a function of a test.
func (c *Conversion) Distort(how func(*ConversionAnswer)) func(context.Context, ConversionRequest) (ConversionAnswer, error) {
	return func(_ context.Context, request ConversionRequest) (ConversionAnswer, error) {
		response := c.Convert(request.ConversionRequest)
		how(&response)
		return response, nil
	}
}

// WrongUID makes an answer one to another request.
func WrongUID(response *ConversionAnswer) {
	response.UID = types.UID("not-" + string(response.UID))
}

// DropLast leaves the last object out.
func DropLast(response *ConversionAnswer) {
	if n := len(response.ConvertedObjects); n > 0 {
		response.ConvertedObjects = response.ConvertedObjects[:n-1]
	}
}

// Rename changes what conversion must not: the names of the objects.
func Rename(response *ConversionAnswer) {
	for i, object := range response.ConvertedObjects {
		var u unstructured.Unstructured
		if err := u.UnmarshalJSON(object.Raw); err != nil {
			continue // it is wrong enough
		}
		u.SetName("not-" + u.GetName())
		if renamed, err := u.MarshalJSON(); err == nil {
			response.ConvertedObjects[i].Raw = bytes.TrimSpace(renamed)
		}
	}
}

// ClientConfig is what a CustomResourceDefinition says to reach this webhook by its
// URL. The path begins with a slash, or is empty.
func (c *Conversion) ClientConfig(path string) apiextensionsv1.WebhookClientConfig {
	url := c.URL() + path
	return apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: c.CA()}
}

// ServiceClientConfig is what a CustomResourceDefinition says to reach this webhook as a
// service at port 443. It fails if the webhook does not serve the service's host, which
// is NAME.NAMESPACE.svc.
func (c *Conversion) ServiceClientConfig(
	namespace, name, path string,
) (config apiextensionsv1.WebhookClientConfig, err error) {
	service, err := c.serviceReference(namespace, name, path)
	if err != nil {
		return config, err
	}
	config.Service, config.CABundle = (*apiextensionsv1.ServiceReference)(service), c.CA()
	return config, nil
}

func (c *Conversion) handle(w http.ResponseWriter, r *http.Request) {
	request := ConversionRequest{HTTP: origin(r)}
	var review apiextensionsv1.ConversionReview
	err := c.kind.read(r, &review)
	if err == nil {
		err = checkConversion(review.Request)
	}
	if review.Request != nil {
		request.ConversionRequest = *review.Request
	}
	respond(w, r, c.Requests, request, err, func(answer ConversionAnswer) any {
		answer.UID = cmp.Or(answer.UID, request.UID)
		return apiextensionsv1.ConversionReview{TypeMeta: c.kind.typeMeta(), Response: &answer}
	})
}

func checkConversion(request *apiextensionsv1.ConversionRequest) error {
	switch {
	case request == nil:
		return errors.New("the review has no request")
	case request.UID == "":
		return errors.New("the request has no uid")
	case len(request.Objects) == 0:
		return errors.New("the request has no objects")
	}
	to, err := schema.ParseGroupVersion(request.DesiredAPIVersion)
	if err != nil || to.Group == "" || to.Version == "" {
		return fmt.Errorf("the desired apiVersion is %q, want GROUP/VERSION", request.DesiredAPIVersion)
	}
	for i, object := range request.Objects {
		var u unstructured.Unstructured
		if err := u.UnmarshalJSON(object.Raw); err != nil {
			return fmt.Errorf("object %d of the request: %w", i, err)
		}
		if from := u.GroupVersionKind(); from.Group != to.Group || from.Version == to.Version {
			return fmt.Errorf("object %d of the request is %s, want another version of %s than %s", i, u.GetAPIVersion(), to.Group, to.Version)
		}
	}
	return nil
}
