package webhook_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"snowglobe.test/fakes/webhook"
)

// send is what the API server does: it posts a review to a webhook.
func send(url string, ca []byte, review string) string {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Post(url, "application/json", strings.NewReader(review))
	if err != nil {
		return "no answer"
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return "half an answer"
	}
	return strings.TrimSpace(string(body))
}

func listenOnLoopback() net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	return l
}

func ExampleServeAdmission() {
	hook, err := webhook.ServeAdmission(listenOnLoopback())
	if err != nil {
		log.Fatal(err)
	}
	defer hook.Stop(context.Background())

	// What to create in the API server.
	none := registrationv1.SideEffectClassNone
	configuration := &registrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "no-root"},
		Webhooks: []registrationv1.ValidatingWebhook{{
			Name:                    "no-root.example.com",
			ClientConfig:            hook.ClientConfig("/validate"),
			AdmissionReviewVersions: []string{"v1"},
			SideEffects:             &none,
			Rules: []registrationv1.RuleWithOperations{{
				Operations: []registrationv1.OperationType{registrationv1.Create},
				Rule:       registrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
		}},
	}

	// All is allowed, except what a rule says. Rules can also hold requests, delay
	// them, fail them, and step aside after some.
	hook.Requests.Use(webhook.AdmissionRule{
		Name: "no root",
		When: func(request webhook.AdmissionRequest) bool { return request.Name == "root" },
		Answer: func(context.Context, webhook.AdmissionRequest) (webhook.AdmissionAnswer, error) {
			return webhook.Deny(http.StatusForbidden, "not that name"), nil
		},
	})

	fmt.Println(send(*configuration.Webhooks[0].ClientConfig.URL, hook.CA(), `{
		"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
		"request": {
			"uid": "1", "operation": "CREATE", "name": "root", "userInfo": {"username": "jane"},
			"kind": {"group": "", "version": "v1", "kind": "Pod"},
			"resource": {"group": "", "version": "v1", "resource": "pods"},
			"object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "root"}}
		}
	}`))
	for _, call := range hook.Requests.Calls() {
		fmt.Printf("%s %s by %s: rule %q\n", call.Request.Operation, call.Request.Name, call.Request.UserInfo.Username, call.Rule)
	}
	// Output:
	// {"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"1","allowed":false,"status":{"metadata":{},"status":"Failure","message":"not that name","code":403}}}
	// CREATE root by jane: rule "no root"
}

func ExampleMutate() {
	hook, err := webhook.ServeAdmission(listenOnLoopback())
	if err != nil {
		log.Fatal(err)
	}
	defer hook.Stop(context.Background())
	hook.Requests.Use(webhook.AdmissionRule{
		Answer: webhook.Mutate(func(object *unstructured.Unstructured) error {
			object.SetLabels(map[string]string{"team": "blue"})
			return nil
		}),
	})
	send(hook.URL(), hook.CA(), `{
		"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
		"request": {
			"uid": "1", "operation": "CREATE", "name": "p", "userInfo": {"username": "jane"},
			"kind": {"group": "", "version": "v1", "kind": "Pod"},
			"resource": {"group": "", "version": "v1", "resource": "pods"},
			"object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
		}
	}`)
	fmt.Println(string(hook.Requests.Calls()[0].Answer.Patch))
	// Output: [{"op":"add","path":"/metadata/labels","value":{"team":"blue"}}]
}

func ExampleServeConversion() {
	hook, err := webhook.ServeConversion(listenOnLoopback())
	if err != nil {
		log.Fatal(err)
	}
	defer hook.Stop(context.Background())
	hook.Handle(schema.GroupKind{Group: "example.com", Kind: "Widget"}, "v1", "v2", func(widget *unstructured.Unstructured) error {
		return unstructured.SetNestedField(widget.Object, "metres", "unit")
	})

	// hook.ClientConfig("/convert") is for spec.conversion.webhook.clientConfig of the CRD.
	const review = `{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
		"request": {
			"uid": "1", "desiredAPIVersion": "example.com/v2",
			"objects": [{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}]
		}
	}`
	fmt.Println(send(hook.URL(), hook.CA(), review))

	// From now on it lies.
	hook.Requests.Use(webhook.ConversionRule{Answer: hook.Distort(webhook.DropLast)})
	fmt.Println(send(hook.URL(), hook.CA(), review))
	// Output:
	// {"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","response":{"uid":"1","convertedObjects":[{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"name":"w"},"unit":"metres"}],"result":{"metadata":{},"status":"Success"}}}
	// {"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","response":{"uid":"1","convertedObjects":[],"result":{"metadata":{},"status":"Success"}}}
}

func ExampleServeTokenReview() {
	hook, err := webhook.ServeTokenReview(listenOnLoopback())
	if err != nil {
		log.Fatal(err)
	}
	defer hook.Stop(context.Background())
	hook.SetToken("secret", authenticationv1.UserInfo{Username: "jane", Groups: []string{"dev"}})

	// hook.Kubeconfig() is the file for --authentication-token-webhook-config-file.
	const review = `{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "secret"}}`
	fmt.Println(send(hook.URL(), hook.CA(), review))
	hook.RemoveToken("secret")
	fmt.Println(send(hook.URL(), hook.CA(), review))
	// Output:
	// {"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","metadata":{},"spec":{},"status":{"authenticated":true,"user":{"username":"jane","groups":["dev"]}}}
	// {"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","metadata":{},"spec":{},"status":{"user":{}}}
}

func ExampleServeSubjectAccessReview() {
	hook, err := webhook.ServeSubjectAccessReview(listenOnLoopback())
	if err != nil {
		log.Fatal(err)
	}
	defer hook.Stop(context.Background())
	hook.Allow(webhook.Access{Group: "dev"}, "developers may do all")
	hook.Deny(webhook.Access{Group: "dev", Verb: "delete"}, "but delete")

	// hook.Kubeconfig() is the file for --authorization-webhook-config-file.
	for _, verb := range []string{"get", "delete"} {
		fmt.Println(send(hook.URL(), hook.CA(), `{
			"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
			"spec": {"user": "jane", "groups": ["dev"], "resourceAttributes": {"verb": "`+verb+`", "resource": "pods"}}
		}`))
	}
	// Output:
	// {"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{},"spec":{},"status":{"allowed":true,"reason":"developers may do all"}}
	// {"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{},"spec":{},"status":{"allowed":false,"denied":true,"reason":"but delete"}}
}

func ExampleServeAudit() {
	hook, err := webhook.ServeAudit(listenOnLoopback())
	if err != nil {
		log.Fatal(err)
	}
	defer hook.Stop(context.Background())
	hook.Requests.Use(webhook.AuditRule{Times: 1, Answer: func(context.Context, webhook.AuditRequest) (webhook.AuditAnswer, error) {
		return webhook.AuditAnswer{}, errors.New("the disk is full")
	}})

	// hook.Kubeconfig() is the file for --audit-webhook-config-file.
	const list = `{
		"apiVersion": "audit.k8s.io/v1", "kind": "EventList",
		"items": [{"auditID": "1", "level": "Metadata", "stage": "ResponseComplete", "verb": "get", "requestURI": "/api", "user": {}}]
	}`
	fmt.Println(send(hook.URL(), hook.CA(), list))
	send(hook.URL(), hook.CA(), list)
	for _, event := range hook.Events() {
		fmt.Println(event.Verb, event.RequestURI)
	}
	// Output:
	// the disk is full
	// get /api
}
