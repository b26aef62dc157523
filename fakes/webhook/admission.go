package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"snowglobe.test/fakes/stub"
)

// Admission is an admission webhook, validating or mutating. By itself it allows
// everything.
type Admission struct {
	server
	// Requests decides the answers and records the calls. A UID is added to answers
	// that have none.
	Requests *stub.Table[AdmissionRequest, AdmissionAnswer]
}

// AdmissionRequest is what an admission webhook is asked.
type AdmissionRequest struct {
	HTTP HTTP
	admissionv1.AdmissionRequest
}

// AdmissionAnswer is what it answers.
type AdmissionAnswer = admissionv1.AdmissionResponse

// AdmissionRule says how some requests are answered.
type AdmissionRule = stub.Rule[AdmissionRequest, AdmissionAnswer]

// ServeAdmission serves an admission webhook with a certificate for the hosts, each a
// DNS name or an IP; without any, for the host of the listener. The listener is the
// webhook's from now on, also if ServeAdmission fails.
func ServeAdmission(l net.Listener, hosts ...string) (*Admission, error) {
	a := &Admission{Requests: stub.NewTable(
		func(context.Context, AdmissionRequest) (AdmissionAnswer, error) { return Allow(), nil })}
	return a, a.serve(l, admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"), admissionv1.AddToScheme,
		`admissionReviewVersions: ["v1"]`, a.handle, hosts)
}

// ClientConfig is what a webhook configuration says to reach this webhook by its URL.
// The path begins with a slash, or is empty.
func (a *Admission) ClientConfig(path string) admissionregistrationv1.WebhookClientConfig {
	url := a.URL() + path
	return admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: a.CA()}
}

// ServiceClientConfig is what a webhook configuration says to reach this webhook as a
// service at port 443. It fails if the webhook does not serve the service's host, which
// is NAME.NAMESPACE.svc.
func (a *Admission) ServiceClientConfig(
	namespace, name, path string,
) (config admissionregistrationv1.WebhookClientConfig, err error) {
	service, err := a.serviceReference(namespace, name, path)
	if err != nil {
		return config, err
	}
	return admissionregistrationv1.WebhookClientConfig{Service: service, CABundle: a.CA()}, nil
}

func (a *Admission) handle(w http.ResponseWriter, r *http.Request) {
	request := AdmissionRequest{HTTP: origin(r)}
	var review admissionv1.AdmissionReview
	err := a.kind.read(r, &review)
	if err == nil {
		err = checkAdmission(review)
	}
	if review.Request != nil {
		request.AdmissionRequest = *review.Request
	}
	respond(w, r, a.Requests, request, err, func(answer AdmissionAnswer) any {
		answer.UID = cmp.Or(answer.UID, request.UID)
		return admissionv1.AdmissionReview{TypeMeta: a.kind.typeMeta(), Response: &answer}
	})
}

func checkAdmission(review admissionv1.AdmissionReview) error {
	request := review.Request
	switch {
	case request == nil:
		return errors.New("the review has no request")
	case review.Response != nil:
		return errors.New("the review has a response already")
	case request.UID == "":
		return errors.New("the request has no uid")
	case request.Kind.Kind == "" || request.Kind.Version == "" || request.Resource.Resource == "" || request.Resource.Version == "":
		return fmt.Errorf("the request is not about a kind and a resource: %v, %v", request.Kind, request.Resource)
	}
	var object, old bool // must be there
	switch request.Operation {
	case admissionv1.Create:
		object = true
	case admissionv1.Update:
		object, old = true, true
	case admissionv1.Delete, admissionv1.Connect:
	default:
		return fmt.Errorf("the operation is %q, want CREATE, UPDATE, DELETE or CONNECT", request.Operation)
	}
	if object && len(request.Object.Raw) == 0 || old && len(request.OldObject.Raw) == 0 {
		return fmt.Errorf("the request to %s has no object, or no oldObject to update", request.Operation)
	}
	return nil
}

// Allow is the answer that lets a request pass.
func Allow(warnings ...string) AdmissionAnswer {
	return AdmissionAnswer{Allowed: true, Warnings: warnings}
}

// Deny is the answer that rejects a request. The code is an HTTP status such as 403;
// with 0 the API server chooses.
func Deny(code int32, message string) AdmissionAnswer {
	return AdmissionAnswer{Result: &metav1.Status{Status: metav1.StatusFailure, Code: code, Message: message}}
}

// Patch is the answer that lets a request pass with its object changed by a JSON patch.
func Patch(patch []byte) AdmissionAnswer {
	answer := Allow()
	if len(patch) > 0 {
		jsonPatch := admissionv1.PatchTypeJSONPatch
		answer.Patch, answer.PatchType = patch, &jsonPatch
	}
	return answer
}

// Mutate is the Answer of a rule that lets requests pass with their object changed as
// the function changes it. If that fails, so does the call.
func Mutate(change func(*unstructured.Unstructured) error) func(context.Context, AdmissionRequest) (AdmissionAnswer, error) {
	return func(_ context.Context, request AdmissionRequest) (none AdmissionAnswer, err error) {
		var before unstructured.Unstructured
		if err := before.UnmarshalJSON(request.Object.Raw); err != nil {
			return none, fmt.Errorf("mutate the object of a request to %s: %w", request.Operation, err)
		}
		after := before.DeepCopy()
		if err := change(after); err != nil {
			return none, fmt.Errorf("mutate %s %q: %w", before.GetKind(), before.GetName(), err)
		}
		patch, err := jsonPatch(before.Object, after.Object)
		if err != nil {
			return none, fmt.Errorf("mutate %s %q: %w", before.GetKind(), before.GetName(), err)
		}
		return Patch(patch), nil
	}
}
