package chain

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
)

// bendWebhooks asks before an admission webhook is called. Of a call the
// transport knows an address only; what it is about, the plugin of admission
// knows, and puts it into the context. The name of the webhook, of which there
// may be several at one address, is in the span that upstream begins for the call.
func (c *Chain) bendWebhooks(plugin admission.Interface, _ string) admission.Interface {
	webhooks, ok := plugin.(initializer.WantsAuthenticationInfoResolverWrapper)
	if !ok {
		return plugin
	}
	webhooks.SetAuthenticationInfoResolverWrapper(c.bendReviews)
	if mutation, ok := plugin.(admission.MutationInterface); ok {
		return &mutatingWebhooks{mutation, c.injector}
	}
	if validation, ok := plugin.(admission.ValidationInterface); ok {
		return &validatingWebhooks{validation, c.injector}
	}
	return plugin
}

// bendReviews puts the rules between the clients of webhooks and the network.
func (c *Chain) bendReviews(upstream webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
	bent := func(config *rest.Config, err error) (*rest.Config, error) {
		if err != nil {
			return nil, err
		}
		config = rest.CopyConfig(config)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return &bentCall{next: next, edge: c.injector, describe: describeReview}
		})
		return config, nil
	}
	return &webhook.AuthenticationInfoResolverDelegator{
		ClientConfigForFunc: func(hostPort string) (*rest.Config, error) { return bent(upstream.ClientConfigFor(hostPort)) },
		ClientConfigForServiceFunc: func(name, namespace string, port int) (*rest.Config, error) {
			return bent(upstream.ClientConfigForService(name, namespace, port))
		},
	}
}

// mutatingWebhooks is upstream's plugin that calls mutating webhooks.
type mutatingWebhooks struct {
	admission.MutationInterface
	edge *fault.Injector
}

// Admit implements admission.MutationInterface.
func (m *mutatingWebhooks) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	return m.MutationInterface.Admit(underReview(ctx, m.edge, a), a, o)
}

// validatingWebhooks is upstream's plugin that calls validating webhooks.
type validatingWebhooks struct {
	admission.ValidationInterface
	edge *fault.Injector
}

// Validate implements admission.ValidationInterface.
func (v *validatingWebhooks) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	return v.ValidationInterface.Validate(underReview(ctx, v.edge, a), a, o)
}

// reviewKey is for what a webhook is called about; reviewerKey for its name.
type (
	reviewKey   struct{}
	reviewerKey struct{}
)

// underReview puts into the context what webhooks are called about.
func underReview(ctx context.Context, edge *fault.Injector, a admission.Attributes) context.Context {
	if !edge.Active() {
		return ctx
	}
	op := fault.Operation{
		Verb: strings.ToLower(string(a.GetOperation())), Resource: withSubresource(a.GetResource().GroupResource().String(), a.GetSubresource()),
		Namespace: a.GetNamespace(), Name: a.GetName(),
	}
	if caller := a.GetUserInfo(); caller != nil {
		op.Caller = caller.GetName()
	}
	ctx = context.WithValue(ctx, reviewKey{}, op)
	return trace.ContextWithSpan(ctx, &reviewSpan{trace.SpanFromContext(ctx)})
}

// describeReview describes the call of a webhook.
func describeReview(req *http.Request) (fault.Operation, bool) {
	op, about := req.Context().Value(reviewKey{}).(fault.Operation)
	reviewer, named := req.Context().Value(reviewerKey{}).(string)
	op.Point = "webhook/" + reviewer
	return op, about && named
}

// reviewSpan is a span below which upstream calls webhooks. It hands out tracers
// that read the names of webhooks, and is otherwise the span that it wraps.
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

// reviewerAttribute is what upstream calls the name of a webhook in a span.
const reviewerAttribute = "webhook"

// Start implements trace.Tracer. The name of a webhook goes into the context.
func (t *reviewTracer) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	ctx, span := t.Tracer.Start(ctx, name, options...)
	config := trace.NewSpanStartConfig(options...)
	for _, attribute := range config.Attributes() {
		if attribute.Key == reviewerAttribute {
			return context.WithValue(ctx, reviewerKey{}, attribute.Value.AsString()), span
		}
	}
	bent := &reviewSpan{span}
	return trace.ContextWithSpan(ctx, bent), bent
}
