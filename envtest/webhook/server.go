package webhook

import (
	"context"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"snowglobe.test/fakes/stub"
)

// Server is one webhook: an HTTPS server that ends with its control plane.
type Server struct {
	set    *Set
	server *stub.Server
	hosts  []string
	at     *host
}

// Open lets the API servers connect. It does nothing after Stop.
func (w *Server) Open() { w.set.openTo(w) }

// Host returns the first of the webhook's hosts; the port is 443.
func (w *Server) Host() string { return w.hosts[0] }

// CA returns the certificate to trust, in PEM: for every webhook, it is that of the
// control plane's own certificate authority.
func (w *Server) CA() []byte { return w.server.CA() }

// URL returns the URL of a path on the webhook.
func (w *Server) URL(path string) string {
	return "https://" + w.Host() + "/" + strings.TrimPrefix(path, "/")
}

// ClientConfig returns the client configuration for an admission webhook at a path.
func (w *Server) ClientConfig(path string) admissionregistrationv1.WebhookClientConfig {
	url := w.URL(path)
	return admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: w.CA()}
}

// Conversion returns the conversion of a definition whose objects are converted at a path.
func (w *Server) Conversion(path string) *apiextensionsv1.CustomResourceConversion {
	url := w.URL(path)
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: w.CA()},
			ConversionReviewVersions: []string{"v1", "v1beta1"},
		},
	}
}

// Kubeconfig returns the kubeconfig by which flags refer to a path; see envtest.WithWebhookFlag.
func (w *Server) Kubeconfig(path string) ([]byte, error) {
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
func (w *Server) Stop(ctx context.Context) error {
	w.set.remove(w)
	if err := w.server.Stop(ctx); err != nil {
		return fmt.Errorf("stop webhook %s: %w", w.Host(), err)
	}
	return nil
}
