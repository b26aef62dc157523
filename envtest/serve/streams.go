package serve

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"golang.org/x/net/proxy"
	"k8s.io/apimachinery/pkg/util/httpstream/spdy"
	"k8s.io/client-go/transport/websocket"

	"snowglobe.test/envtest/memnet"
)

// Dial opens a connection to a server, whatever the address.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// spdyPings is client-go's time between two pings.
const spdyPings = 5 * time.Second

// Streams returns the WrapTransport of a configuration by which exec, attach and port-forward get to
// the server. Client-go's executors and forwarders dial by themselves, over SPDY and over WebSocket,
// and leave a configuration's Transport and Dial out. But before they do, they have their round
// tripper wrapped.
func Streams(dial Dial, config *tls.Config) func(http.RoundTripper) http.RoundTripper {
	return func(rt http.RoundTripper) http.RoundTripper {
		switch rt := rt.(type) {
		case *spdy.SpdyRoundTripper:
			// An UpgradeTransport is only taken in the making.
			upgrades := spdy.RoundTripperConfig{PingPeriod: spdyPings, UpgradeTransport: memnet.UpgradeTransport(dial, config)}
			if made, err := spdy.NewRoundTripperWithConfig(upgrades); err == nil {
				*rt = *made
			}
		case *websocket.RoundTripper:
			rt.TLSConfig, rt.Proxier = config, dial.proxier
		}
		return rt
	}
}

// dialScheme is that of the URLs of proxies that are a Dial.
const dialScheme = "snowglobe"

func init() { proxy.RegisterDialerType(dialScheme, proxyOf) }

// dials are those of the proxies that are about to be asked, by their *url.URL.
var dials sync.Map

// proxier is the only way to give a WebSocket dialer of client-go a connection: through what it takes
// for a proxy.
func (d Dial) proxier(*http.Request) (*url.URL, error) {
	u := &url.URL{Scheme: dialScheme}
	dials.Store(u, d)
	return u, nil
}

func proxyOf(u *url.URL, _ proxy.Dialer) (proxy.Dialer, error) {
	dial, ok := dials.LoadAndDelete(u)
	if !ok {
		return nil, ErrRefused
	}
	return dial.(Dial), nil
}

// Dial implements proxy.Dialer.
func (d Dial) Dial(network, address string) (net.Conn, error) {
	return d(context.Background(), network, address)
}

// DialContext implements proxy.ContextDialer.
func (d Dial) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return d(ctx, network, address)
}
