package webhook

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"snowglobe.test/fakes/stub"
)

// server is what all webhooks have in common. It answers on all paths, and rules see on which.
type server struct {
	*stub.Server
	kind  kind
	hosts []string
}

// serve serves a webhook that is sent objects of a kind; see newKind. The listener is
// the webhook's from now on, also if serve fails.
func (s *server) serve(l net.Listener, gvk schema.GroupVersionKind, add func(*runtime.Scheme) error, setting string, handler http.HandlerFunc, hosts []string) (err error) {
	if s.kind, err = newKind(gvk, add, setting); err != nil {
		return errors.Join(err, l.Close())
	}
	s.hosts = hosts
	if s.Server, err = stub.ServeTLS(l, handler, hosts...); err != nil {
		return fmt.Errorf("serve a webhook: %w", err)
	}
	return nil
}

// kubeconfig is a file for the flags that name a webhook.
func (s *server) kubeconfig() []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- name: webhook
  cluster:
    server: %q
    certificate-authority-data: %s
contexts:
- name: webhook
  context:
    cluster: webhook
current-context: webhook
`, s.URL(), base64.StdEncoding.EncodeToString(s.CA()))
}

// serviceReference refers to the webhook as a service.
func (s *server) serviceReference(namespace, name, path string) (*admissionregistrationv1.ServiceReference, error) {
	if namespace == "" || name == "" {
		return nil, errors.New("a reference to a service needs its namespace and its name")
	}
	if host := name + "." + namespace + ".svc"; !slices.Contains(s.hosts, host) {
		return nil, fmt.Errorf("the webhook has no certificate for %s: give it that host when it begins to serve", host)
	}
	port := servicePort
	return &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: name, Path: &path, Port: &port}, nil
}

// servicePort is the port of webhooks that are services.
const servicePort int32 = 443
