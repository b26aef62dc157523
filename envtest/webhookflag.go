package envtest

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
)

// flagWebhook is a webhook that a flag names.
type flagWebhook struct {
	flag    string
	handler http.Handler
}

// WithWebhookFlag serves a handler as ControlPlane.ServeWebhook does, and passes a
// kubeconfig for it, at path "/", as a flag of kube-apiserver, given without dashes:
//
//	authentication-token-webhook-config-file
//	authorization-webhook-config-file, along with --authorization-mode=Webhook,RBAC
//	audit-webhook-config-file, along with --audit-policy-file
func WithWebhookFlag(flag string, handler http.Handler) Option {
	return func(c *config) {
		if !IsServerFlag(flag) {
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
	dir, err := os.MkdirTemp("", "snowglobe-webhooks-")
	if err != nil {
		return err
	}
	cp.webhookDir = dir
	for _, hook := range cp.cfg.flagWebhooks {
		served, err := cp.ServeWebhook(hook.handler)
		if err != nil {
			return err
		}
		content, err := served.Kubeconfig("/")
		if err != nil {
			return err
		}
		path := filepath.Join(dir, served.Host()+".kubeconfig")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return err
		}
		cp.cfg.flags = append(cp.cfg.flags, fmt.Sprintf("--%s=%s", hook.flag, path))
	}
	return nil
}

// removeWebhookFiles removes what serveFlagWebhooks has written.
func (cp *ControlPlane) removeWebhookFiles() error {
	if cp.webhookDir == "" {
		return nil
	}
	return os.RemoveAll(cp.webhookDir)
}
