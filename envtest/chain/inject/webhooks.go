package inject

import (
	"context"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/initializer"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/fault/edge"
)

// Webhooks returns a decorator of admission plugins that asks the rules before an
// admission webhook is called. The transport of the call knows only an address. So
// the decorated plugin puts what the call is about into the context; the webhook's
// name, as several may share an address, comes from upstream's tracing span. configure changes
// the configurations of its clients.
func Webhooks(i *edge.Injector, configure func(*rest.Config)) admission.Decorator {
	return admission.DecoratorFunc(func(plugin admission.Interface, _ string) admission.Interface {
		webhooks, ok := plugin.(initializer.WantsAuthenticationInfoResolverWrapper)
		if !ok {
			return plugin
		}
		webhooks.SetAuthenticationInfoResolverWrapper(func(upstream webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
			return ConfigureWebhooks(upstream, func(config *rest.Config) {
				configure(config)
				config.Wrap(func(next http.RoundTripper) http.RoundTripper {
					return &transport{next: next, injector: i, describe: describeReview}
				})
			})
		})
		if mutation, ok := plugin.(admission.MutationInterface); ok {
			return &mutatingWebhooks{mutation, i}
		}
		if validation, ok := plugin.(admission.ValidationInterface); ok {
			return &validatingWebhooks{validation, i}
		}
		return plugin
	})
}

// ConfigureWebhooks has configure change the configuration of each client of a webhook.
func ConfigureWebhooks(
	upstream webhook.AuthenticationInfoResolver, configure func(*rest.Config),
) webhook.AuthenticationInfoResolver {
	configured := func(config *rest.Config, err error) (*rest.Config, error) {
		if err != nil {
			return nil, err
		}
		config = rest.CopyConfig(config)
		configure(config)
		return config, nil
	}
	return &webhook.AuthenticationInfoResolverDelegator{
		ClientConfigForFunc: func(hostPort string) (*rest.Config, error) {
			return configured(upstream.ClientConfigFor(hostPort))
		},
		ClientConfigForServiceFunc: func(name, namespace string, port int) (*rest.Config, error) {
			return configured(upstream.ClientConfigForService(name, namespace, port))
		},
	}
}

type mutatingWebhooks struct {
	admission.MutationInterface
	injector *edge.Injector
}

// Admit implements admission.MutationInterface.
func (m *mutatingWebhooks) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	return m.MutationInterface.Admit(underReview(ctx, m.injector, a), a, o)
}

type validatingWebhooks struct {
	admission.ValidationInterface
	injector *edge.Injector
}

// Validate implements admission.ValidationInterface.
func (v *validatingWebhooks) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	return v.ValidationInterface.Validate(underReview(ctx, v.injector, a), a, o)
}

// reviewKey is for what a webhook is called about; reviewerKey for its name.
type (
	reviewKey   struct{}
	reviewerKey struct{}
)

// underReview puts into the context what webhooks are called about.
func underReview(ctx context.Context, i *edge.Injector, a admission.Attributes) context.Context {
	if !i.Active() {
		return ctx
	}
	op := fault.Operation{
		Verb:      strings.ToLower(string(a.GetOperation())),
		Resource:  withSubresource(a.GetResource().GroupResource(), a.GetSubresource()),
		Namespace: a.GetNamespace(), Name: a.GetName(),
	}
	if caller := a.GetUserInfo(); caller != nil {
		op.Caller = caller.GetName()
	}
	ctx = context.WithValue(ctx, reviewKey{}, op)
	return trace.ContextWithSpan(ctx, &reviewSpan{trace.SpanFromContext(ctx)})
}

func describeReview(req *http.Request) (fault.Operation, bool) {
	op, about := req.Context().Value(reviewKey{}).(fault.Operation)
	reviewer, named := req.Context().Value(reviewerKey{}).(string)
	op.Point = fault.WebhookPoint + reviewer
	return op, about && named
}

// reviewSpan is the parent span of webhook calls. Its tracers read the names of
// webhooks from the attributes of child spans.
type reviewSpan struct{ trace.Span }

// TracerProvider implements trace.Span.
func (s *reviewSpan) TracerProvider() trace.TracerProvider {
	return &reviewTracers{s.Span.TracerProvider()}
}

type reviewTracers struct{ trace.TracerProvider }

// Tracer implements trace.TracerProvider.
func (p *reviewTracers) Tracer(name string, options ...trace.TracerOption) trace.Tracer {
	return &reviewTracer{p.TracerProvider.Tracer(name, options...)}
}

type reviewTracer struct{ trace.Tracer }

// Start implements trace.Tracer. It puts the name of a webhook, an attribute of
// upstream's span, into the context.
func (t *reviewTracer) Start(
	ctx context.Context, name string, options ...trace.SpanStartOption,
) (context.Context, trace.Span) {
	ctx, span := t.Tracer.Start(ctx, name, options...)
	config := trace.NewSpanStartConfig(options...)
	for _, attribute := range config.Attributes() {
		if attribute.Key == "webhook" {
			return context.WithValue(ctx, reviewerKey{}, attribute.Value.AsString()), span
		}
	}
	wrapped := &reviewSpan{span}
	return trace.ContextWithSpan(ctx, wrapped), wrapped
}
