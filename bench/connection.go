package bench

import (
	"net"
	"net/http"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// connection is one client of a load. client-go shares connections between
// clients of one configuration; a load stands for clients on many machines, so
// each gets its own, unless the configuration comes with a transport.
type connection struct {
	kubernetes.Interface
	own *http.Transport // nil when it is not ours
}

func connect(config *rest.Config, contentType string) (connection, error) {
	config = rest.CopyConfig(config)
	config.ContentType, config.AcceptContentTypes = contentType, contentType
	config.QPS = -1 // the load sets its own pace
	if config.Transport != nil {
		client, err := kubernetes.NewForConfig(config)
		return connection{Interface: client}, err
	}
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return connection{}, err
	}
	dial := config.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	own := &http.Transport{TLSClientConfig: tls, ForceAttemptHTTP2: true, DialContext: dial, Proxy: config.Proxy}
	wrapped, err := rest.HTTPWrappersForConfig(config, own)
	if err != nil {
		return connection{}, err
	}
	client, err := kubernetes.NewForConfigAndClient(config, &http.Client{Transport: wrapped})
	return connection{Interface: client, own: own}, err
}

func (c connection) close() {
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
}
