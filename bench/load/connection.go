package load

import (
	"net"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
)

// connection is one client of a load. A load stands for clients on many machines, so
// each gets connections of its own, unless the configuration has a transport:
// client-go shares connections between clients of one configuration, and so of one dialer.
type connection struct {
	config *rest.Config
	http   *http.Client
	rest   *rest.RESTClient     // on http
	dialed *connrotation.Dialer // nil if the configuration has a transport
}

func connect(config *rest.Config, contentType string) (connection, error) {
	config = rest.CopyConfig(config)
	config.ContentType, config.AcceptContentTypes = contentType, contentType
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.QPS = -1 // the load limits its own rate
	c := connection{config: config}
	if config.Transport == nil {
		dial := config.Dial
		if dial == nil {
			dial = (&net.Dialer{}).DialContext
		}
		c.dialed = connrotation.NewDialer(dial)
		config.Dial = c.dialed.DialContext
	}
	var err error
	if c.http, err = rest.HTTPClientFor(config); err != nil {
		return c, err
	}
	core := rest.CopyConfig(config)
	core.GroupVersion, core.APIPath = &corev1.SchemeGroupVersion, "/api"
	c.rest, err = rest.RESTClientForConfigAndClient(core, c.http)
	return c, err
}

// Close aborts calls under way and closes the connections. http.Transport closes only
// idle ones, and that of a watch just stopped is not idle yet.
func (c connection) Close() {
	if c.dialed != nil {
		c.dialed.CloseAll()
	}
}

// Clients are a connection for all that is asked of an API server.
type Clients struct {
	connection
	kubernetes.Interface
	dynamic dynamic.Interface
}

// Connect connects to an API server, by JSON.
func Connect(config *rest.Config) (c Clients, err error) {
	if c.connection, err = connect(config, jsonType); err != nil {
		return c, err
	}
	if c.Interface, err = kubernetes.NewForConfigAndClient(c.config, c.http); err != nil {
		return c, err
	}
	c.dynamic, err = dynamic.NewForConfigAndClient(c.config, c.http)
	return c, err
}
