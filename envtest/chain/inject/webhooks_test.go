package inject

import (
	"context"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/tracing"
)

// webhookPlugin calls a webhook as upstream's admission plugins do.
type webhookPlugin struct {
	*admission.Handler
	next   http.RoundTripper
	client *http.Client
}

// SetAuthenticationInfoResolverWrapper implements upstream's initializer.
func (p *webhookPlugin) SetAuthenticationInfoResolverWrapper(wrap webhook.AuthenticationInfoResolverWrapper) {
	plain := func() (*rest.Config, error) { return &rest.Config{Transport: p.next}, nil }
	config, err := wrap(&webhook.AuthenticationInfoResolverDelegator{
		ClientConfigForFunc:        func(string) (*rest.Config, error) { return plain() },
		ClientConfigForServiceFunc: func(string, string, int) (*rest.Config, error) { return plain() },
	}).ClientConfigFor("webhook:443")
	if err == nil {
		p.client, err = rest.HTTPClientFor(config)
	}
	if err != nil {
		panic(err)
	}
}

// ValidateInitialization implements admission.InitializationValidator.
func (p *webhookPlugin) ValidateInitialization() error { return nil }

// Admit implements admission.MutationInterface.
func (p *webhookPlugin) Admit(ctx context.Context, _ admission.Attributes, _ admission.ObjectInterfaces) error {
	ctx, span := tracing.Start(ctx, "Call mutating webhook", attribute.String("webhook", "policy.example.com"))
	defer span.End(0)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://webhook/", strings.NewReader("review"))
	if err != nil {
		return err
	}
	response, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

// TestWebhooks finds out which webhook a call is for, and about what.
func TestWebhooks(t *testing.T) {
	for rule, refused := range map[string]bool{
		"fail webhook/policy.example.com with=refused": true,
		"fail webhook/policy.example.com verb=create resource=pods/binding namespace=default name=a caller=jane " +
			"with=refused": true,
		"fail webhook/policy.example.com verb=update with=refused": false,
		"fail webhook/other.example.com with=refused":              false,
	} {
		var next roundTrips
		plugin := Webhooks(injectorFor(t, rule), func(*rest.Config) {}).
			Decorate(&webhookPlugin{Handler: admission.NewHandler(admission.Create), next: &next}, "webhook")
		err := plugin.(admission.MutationInterface).Admit(t.Context(),
			admission.NewAttributesRecord(nil, nil, corev1.SchemeGroupVersion.WithKind("Pod"), "default", "a",
				corev1.SchemeGroupVersion.WithResource("pods"), "binding", admission.Create, nil, false,
				&user.DefaultInfo{Name: "jane"}), nil)
		if refused {
			require.ErrorIs(t, err, syscall.ECONNREFUSED, rule)
			assert.Empty(t, next, rule)
		} else {
			require.NoError(t, err, rule)
			assert.Len(t, next, 1, rule)
		}
	}
	other := admission.NewHandler(admission.Create)
	assert.Same(t, other, Webhooks(nil, nil).Decorate(other, "other"))
}
