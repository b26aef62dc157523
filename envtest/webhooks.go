package envtest

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest/serverflags"
	"snowglobe.test/envtest/webhook"
	"snowglobe.test/internal/memfile"
)

// Webhooks serves HTTPS to the API servers, in the memory of the process: admission and
// conversion webhooks, and whatever else they call.
func (cp *ControlPlane) Webhooks() *webhook.Set { return cp.webhooks }

// serviceAt returns the host of the service with a cluster IP, as kube-proxy would, and
// the IP itself if there is none.
func (cp *ControlPlane) serviceAt(ctx context.Context, ip string) (host string, err error) {
	client, err := kubernetes.NewForConfig(cp.Config())
	if err != nil {
		return "", err
	}
	services, err := client.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("look for the service at %s: %w", ip, err)
	}
	for _, service := range services.Items {
		if slices.Contains(service.Spec.ClusterIPs, ip) {
			return service.Name + "." + service.Namespace + ".svc", nil
		}
	}
	return ip, nil
}

// flagWebhook is a webhook that a flag names.
type flagWebhook struct {
	flag    string
	handler http.Handler
}

// WithWebhookFlag serves a handler as webhook.Set.Serve does, and passes a
// kubeconfig for it, at path "/", as a flag of kube-apiserver, given without dashes:
//
//	authentication-token-webhook-config-file
//	authorization-webhook-config-file, along with --authorization-mode=Webhook,RBAC
//	audit-webhook-config-file, along with --audit-policy-file
func WithWebhookFlag(flag string, handler http.Handler) Option {
	return func(c *config) {
		if !serverflags.Has(flag) {
			c.refuse("WithWebhookFlag: kube-apiserver has no flag %q; write it without dashes, like authentication-token-webhook-config-file", flag)
		}
		c.flagWebhooks = append(c.flagWebhooks, flagWebhook{flag, handler})
	}
}

// serveFlagWebhooks serves the webhooks of flags, which are read when a server boots.
func (cp *ControlPlane) serveFlagWebhooks() error {
	if len(cp.cfg.flagWebhooks) == 0 {
		return nil
	}
	for _, hook := range cp.cfg.flagWebhooks {
		served, err := cp.webhooks.Serve(hook.handler)
		if err != nil {
			return err
		}
		content, err := served.Kubeconfig("/")
		if err != nil {
			return err
		}
		file, err := memfile.New("kubeconfig", content)
		if err != nil {
			return err
		}
		cp.webhookFiles = append(cp.webhookFiles, file)
		cp.cfg.flags = append(cp.cfg.flags, fmt.Sprintf("--%s=%s", hook.flag, file.Path()))
	}
	return nil
}
