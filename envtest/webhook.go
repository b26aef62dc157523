package envtest

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"snowglobe.test/envtest/memnet"
	"snowglobe.test/fakes/stub"
)

// Webhook is an HTTPS server in the memory of the process that only the API servers of
// its control plane can reach: it needs no port and no certificate files, and works in
// virtual time. Upstream's own webhook code calls it, subject to the rules of "egress".
// Make it with ControlPlane.ServeWebhook; it ends with the control plane.
type Webhook struct {
	inside *inside
	server *stub.Server
	hosts  []string
	at     *place
}

// ServeWebhook serves a handler to the API servers: an admission or conversion webhook,
// or any other HTTPS server that they call, such as an aggregated API server. It is served
// at the given hosts, or at one of its own. "webhook-service.system.svc" is the host of a
// Service, which has to exist for upstream to call it. A host that belonged to another
// webhook belongs to this one from the next connection on.
func (cp *ControlPlane) ServeWebhook(handler http.Handler, hosts ...string) (*Webhook, error) {
	w, err := cp.NewWebhook(handler, hosts...)
	if err != nil {
		return nil, err
	}
	w.Open()
	return w, nil
}

// NewWebhook is ServeWebhook, but connections are refused until Open is called.
func (cp *ControlPlane) NewWebhook(handler http.Handler, hosts ...string) (*Webhook, error) {
	if len(hosts) == 0 {
		hosts = []string{cp.inside.name()}
	}
	listener := memnet.Listen()
	server, err := stub.ServeTLSBy(cp.authority, listener, handler, hosts...)
	if err != nil {
		return nil, fmt.Errorf("serve a webhook: %w", err)
	}
	w := &Webhook{inside: cp.inside, server: server, hosts: hosts, at: &place{listener: listener}}
	if err := cp.inside.add(w, w.at); err != nil {
		_ = server.Stop(context.Background()) // nobody has called it
		return nil, fmt.Errorf("serve a webhook: %w", err)
	}
	return w, nil
}

// Open lets the API servers connect. It does nothing after Stop.
func (w *Webhook) Open() { w.inside.openTo(w) }

// Host returns the first of the webhook's hosts; the port is 443.
func (w *Webhook) Host() string { return w.hosts[0] }

// CA returns the certificate to trust, in PEM: for every webhook, it is that of the
// control plane's own certificate authority.
func (w *Webhook) CA() []byte { return w.server.CA() }

// URL returns the URL of a path on the webhook.
func (w *Webhook) URL(path string) string {
	return "https://" + w.Host() + "/" + strings.TrimPrefix(path, "/")
}

// ClientConfig returns the client configuration for an admission webhook at a path.
func (w *Webhook) ClientConfig(path string) admissionregistrationv1.WebhookClientConfig {
	url := w.URL(path)
	return admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: w.CA()}
}

// Conversion returns the conversion of a definition whose objects are converted at a path.
func (w *Webhook) Conversion(path string) *apiextensionsv1.CustomResourceConversion {
	url := w.URL(path)
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: w.CA()},
			ConversionReviewVersions: []string{"v1", "v1beta1"},
		},
	}
}

// Kubeconfig returns the kubeconfig by which flags refer to a path; see WithWebhookFlag.
func (w *Webhook) Kubeconfig(path string) ([]byte, error) {
	const name = "webhook"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: w.URL(path), CertificateAuthorityData: w.CA()}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name}
	config.CurrentContext = name
	return clientcmd.Write(*config)
}

// Stop refuses new connections, and returns when the requests in flight have been
// answered. If the context ends first, it breaks off those that are left and returns an
// error. It may be called twice.
func (w *Webhook) Stop(ctx context.Context) error {
	w.inside.remove(w)
	if err := w.server.Stop(ctx); err != nil {
		return fmt.Errorf("stop webhook %s: %w", w.Host(), err)
	}
	return nil
}
