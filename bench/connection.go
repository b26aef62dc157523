package bench

import (
	"context"
	"net"
	"net/http"
	"sync"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// connection is one client of a load. client-go shares connections between
// clients of one configuration; a load stands for clients on many machines, so
// each gets its own, unless the configuration comes with a transport.
type connection struct {
	kubernetes.Interface
	dialed *dialed // nil when the connections are not ours
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

// close breaks off what goes on and closes the connections.
func (c connection) close() {
	if c.dialed != nil {
		c.dialed.close()
	}
}

// dialed are the connections of one client. http.Transport closes only those
// that are idle, and a watch that was just stopped is not yet.
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
		_ = conn.Close() // nothing of it is needed any more
	}
}
