package webhook

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"snowglobe.test/fakes/stub"
)

// server is what all webhooks have in common.
type server struct {
	kind  kind
	hosts []string
	stub  *stub.Server
}

// serve serves a webhook that is sent objects of a kind; see newKind. The listener is
// the webhook's from now on, also if serve fails.
func (s *server) serve(l net.Listener, gvk schema.GroupVersionKind, add func(*runtime.Scheme) error, setting string, handler http.HandlerFunc, hosts []string) (err error) {
	if s.kind, err = newKind(gvk, add, setting); err != nil {
		return errors.Join(err, l.Close())
	}
	s.hosts = hosts
	if s.stub, err = stub.ServeTLS(l, handler, hosts...); err != nil {
		return fmt.Errorf("serve a webhook: %w", err)
	}
	return nil
}

// URL is where the webhook is, without a path: it answers on all paths, and rules see
// on which. Its host is the first that the webhook was given.
func (s *server) URL() string { return s.stub.URL() }

// CA is the certificate, in PEM, that clients trust.
func (s *server) CA() []byte { return s.stub.CA() }

// Stop closes the listener, and returns when the requests in flight have been answered.
// When the context ends, it breaks off those that are left, and returns an error.
func (s *server) Stop(ctx context.Context) error { return s.stub.Stop(ctx) }

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

// serviceReference says what is wrong with a reference to the webhook as a service.
func (s *server) serviceReference(namespace, name string) error {
	if namespace == "" || name == "" {
		return errors.New("a reference to a service needs its namespace and its name")
	}
	if host := name + "." + namespace + ".svc"; !slices.Contains(s.hosts, host) {
		return fmt.Errorf("the webhook has no certificate for %s: give it that host when it begins to serve", host)
	}
	return nil
}

// servicePort is the port of webhooks that are services.
const servicePort int32 = 443
