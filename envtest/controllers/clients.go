//go:build !snowglobe_light

package controllers

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/controller-manager/pkg/clientbuilder"
	"k8s.io/klog/v2"

	"snowglobe.test/envtest/component"
)

// clients makes the clients of a controller manager: each controller is the service
// account of its name, with the roles that the API server gives it at its first boot.
type clients struct {
	component *component.Component
}

var _ clientbuilder.ControllerClientBuilder = clients{}

// rootCAPublisher takes nothing from its configuration but the authority.
const rootCAPublisher = "root-ca-cert-publisher"

// Config implements clientbuilder.ControllerClientBuilder.
func (c clients) Config(name string) (*rest.Config, error) {
	config := c.of("system:serviceaccount:kube-system:"+name, "system:serviceaccounts", "system:serviceaccounts:kube-system")
	if name == rootCAPublisher {
		config.CAData = c.component.CA
	}
	return rest.AddUserAgent(config, name), nil
}

// of is the configuration of a user, in upstream's encoding.
func (c clients) of(user string, groups ...string) *rest.Config {
	config := c.component.Config(user, groups...)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return config
}

// Client implements clientbuilder.ControllerClientBuilder.
func (c clients) Client(name string) (kubernetes.Interface, error) {
	config, err := c.Config(name)
	if err != nil {
		return nil, err
	}
	config.CAData = nil // there is no TLS inside the process
	return kubernetes.NewForConfig(config)
}

// DiscoveryClient implements clientbuilder.ControllerClientBuilder.
func (c clients) DiscoveryClient(name string) (discovery.DiscoveryInterface, error) {
	config, err := c.Config(name)
	if err != nil {
		return nil, err
	}
	return discovery.NewDiscoveryClientForConfig(config)
}

// ConfigOrDie implements clientbuilder.ControllerClientBuilder.
func (c clients) ConfigOrDie(name string) *rest.Config { return orDie(c.Config(name)) }

// ClientOrDie implements clientbuilder.ControllerClientBuilder.
func (c clients) ClientOrDie(name string) kubernetes.Interface { return orDie(c.Client(name)) }

// DiscoveryClientOrDie implements clientbuilder.ControllerClientBuilder.
func (c clients) DiscoveryClientOrDie(name string) discovery.DiscoveryInterface {
	return orDie(c.DiscoveryClient(name))
}

func orDie[T any](made T, err error) T {
	if err != nil {
		klog.Fatal(err)
	}
	return made
}
