package bench

import (
	"context"
	"net"
	"net/http"
	"sync"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// connection is one client of a load. A load stands for clients on many machines, so
// each gets connections of its own, unless the configuration has a transport:
// client-go would share connections between clients of one configuration.
type connection struct {
	kubernetes.Interface
	dialed *dialed // nil if the configuration has a transport
}

func connect(config *rest.Config, contentType string) (connection, error) {
	config = rest.CopyConfig(config)
	config.ContentType, config.AcceptContentTypes = contentType, contentType
	config.QPS = -1 // the load limits its own rate
	if config.Transport != nil {
		client, err := kubernetes.NewForConfig(config)
		return connection{Interface: client}, err
	}
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return connection{}, err
	}
	own := &dialed{dial: config.Dial}
	if own.dial == nil {
		own.dial = (&net.Dialer{}).DialContext
	}
	transport := &http.Transport{TLSClientConfig: tls, ForceAttemptHTTP2: true, DialContext: own.dialContext, Proxy: config.Proxy}
	wrapped, err := rest.HTTPWrappersForConfig(config, transport)
	if err != nil {
		return connection{}, err
	}
	client, err := kubernetes.NewForConfigAndClient(config, &http.Client{Transport: wrapped})
	return connection{Interface: client, dialed: own}, err
}

// close aborts calls under way and closes the connections.
func (c connection) close() {
	if c.dialed != nil {
		c.dialed.close()
	}
}

// dialed holds the connections of one client. http.Transport closes only idle ones,
// and that of a watch just stopped is not idle yet.
type dialed struct {
	dial  func(ctx context.Context, network, address string) (net.Conn, error)
	mu    sync.Mutex
	conns []net.Conn
}

func (d *dialed) dialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conns = append(d.conns, conn)
	return conn, nil
}

func (d *dialed) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, conn := range d.conns {
		_ = conn.Close() // nothing more is read from it
	}
}
