package controllerruntime

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
	crenvtest "sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	crwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/webhook"
)

// WebhookServer is a webhook.Server of controller-runtime, for a controller-runtime manager's WebhookServer option:
// what is registered there is served in the memory of the process, also in virtual time,
// from the start of the manager until its end. Make it with NewWebhookServer.
type WebhookServer struct {
	crwebhook.DefaultServer // registers
	*webhook.Server

	cp      *envtest.ControlPlane
	started atomic.Bool
}

var _ crwebhook.Server = (*WebhookServer)(nil)

// NewWebhookServer returns a webhook server for a manager, at the given hosts or at one of
// its own; see webhook.Set.Serve. Connections are refused until the manager
// starts. A manager that is started again needs a new one, at the same hosts.
func NewWebhookServer(cp *envtest.ControlPlane, hosts ...string) (*WebhookServer, error) {
	mux := http.NewServeMux()
	hook, err := cp.Webhooks().New(mux, hosts...)
	if err != nil {
		return nil, err
	}
	s := &WebhookServer{Server: hook, cp: cp}
	s.Options.WebhookMux = mux
	return s, nil
}

// Start implements controller-runtime's webhook.Server: it serves until ctx ends.
func (s *WebhookServer) Start(ctx context.Context) error {
	s.Open()
	s.started.Store(true)
	<-ctx.Done()
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	defer cancel()
	return s.Stop(stop)
}

// goodbye is how long requests in flight may take when the server stops.
const goodbye = 10 * time.Second

// StartedChecker implements controller-runtime's webhook.Server.
func (s *WebhookServer) StartedChecker() healthz.Checker {
	return func(*http.Request) error {
		if !s.started.Load() {
			return errors.New("the webhook server has not been started yet")
		}
		return nil
	}
}

// Install creates or replaces the admission webhooks in manifests, given as files or
// folders, so that they call this server, at the path of the service that they name.
func (s *WebhookServer) Install(paths ...string) error {
	options := s.installOptions()
	for _, path := range paths {
		if err := readWebhooks(path, options); err != nil {
			return err
		}
	}
	for _, hooks := range options.MutatingWebhooks {
		for i := range hooks.Webhooks {
			s.serveIn(&hooks.Webhooks[i].ClientConfig)
		}
	}
	for _, hooks := range options.ValidatingWebhooks {
		for i := range hooks.Webhooks {
			s.serveIn(&hooks.Webhooks[i].ClientConfig)
		}
	}
	return options.Install(s.cp.Config())
}

// serveIn makes the server the place of a service.
func (s *WebhookServer) serveIn(config *admissionregistrationv1.WebhookClientConfig) {
	if service := config.Service; service != nil {
		*config = s.ClientConfig(ptr.Deref(service.Path, "/"))
	}
}

// InstallCRDs installs definitions as controller-runtime's envtest.InstallCRDs does. Kinds
// that are convertible by their Go types in the scheme, as hub and spokes, are converted by
// the server.
func (s *WebhookServer) InstallCRDs(options crenvtest.CRDInstallOptions) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	options.WebhookOptions = *s.installOptions()
	return crenvtest.InstallCRDs(s.cp.Config(), options)
}

// installOptions are controller-runtime's, pointed at the server.
func (s *WebhookServer) installOptions() *crenvtest.WebhookInstallOptions {
	return &crenvtest.WebhookInstallOptions{LocalServingHost: s.Host(), LocalServingPort: 443, LocalServingCAData: s.CA()}
}
