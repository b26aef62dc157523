package egress

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Network is how a server reaches hosts.
type Network struct {
	// InProcess connects to what is in the memory of the process; it is not ok if the
	// address is not there. Nil knows no such place.
	InProcess func(ctx context.Context, address string) (conn net.Conn, ok bool, err error)
	// Outside is asked for every other host.
	Outside utilnet.DialFunc
	// Sealed says that Outside is not the network of the machine: the proxies of the
	// environment are not on the way.
	Sealed bool
}

// dial reaches a host, or the proxy of the environment instead that a client has dialed for it.
func (n Network) dial(ctx context.Context, kind, address string) (net.Conn, error) {
	if n.InProcess != nil {
		if conn, ok, err := n.InProcess(ctx, address); ok {
			return conn, err
		}
	}
	if way, detours := ctx.Value(detourKey{}).(*detour); detours && !n.Sealed {
		way.taken, address = true, way.proxy
	}
	return n.Outside(ctx, kind, address)
}

// Dialer is the dialer of a network, which asks the rules first. Upstream's HTTP clients follow
// HTTP_PROXY and HTTPS_PROXY, and no configuration of the server says otherwise: they dial
// the proxy and ask it for the host. What is in process, or in a sealed network, is not behind
// the proxy, so here they get that connection instead; any other host they reach through the
// proxy, as in a kube-apiserver.
func (n Network) Dialer(rules func(utilnet.DialFunc) utilnet.DialFunc) utilnet.DialFunc {
	direct := rules(n.dial)
	return func(ctx context.Context, kind, address string) (net.Conn, error) { // outlives the server: see inject.Egress
		host, address := behindTarget(address)
		name, proxy, wantsTLS := behindPlainName(address)
		switch {
		case wantsTLS:
		case slices.Contains(environmentProxies("http", "socks5", "socks5h"), address):
			proxy = address
		default:
			conn, err := direct(ctx, kind, address)
			if err != nil && slices.Contains(environmentProxies("https"), address) {
				err = fmt.Errorf("%w: the environment has a proxy of https://, through which even what is in memory is looked for; name such hosts in NO_PROXY", err)
			}
			return conn, err
		}
		connect := func(ctx context.Context, target string) (net.Conn, bool, error) {
			way := &detour{proxy: proxy}
			conn, err := direct(context.WithValue(ctx, detourKey{}, way), kind, target)
			if err == nil && way.taken && wantsTLS {
				conn = tls.Client(conn, &tls.Config{ServerName: name})
			}
			return conn, way.taken, err
		}
		if host != "" {
			conn, _, err := connect(ctx, host)
			return conn, err
		}
		return newProxyConn(ctx, connect), nil
	}
}

// detour says in a context that a client wants to reach a host through a proxy, and
// afterwards whether it does.
type detour struct {
	proxy string
	taken bool
}

type detourKey struct{}

// environmentProxies returns the addresses of the proxies of these schemes that HTTP clients
// of this process find in their environment. To a proxy of "https" they speak TLS before they
// say for which host they come, and want a certificate by the CA of the proxy: no other server
// can answer in its place. The proxies are asked for, not read: net/http remembers what it has
// read first.
func environmentProxies(schemes ...string) (addresses []string) {
	for _, scheme := range []string{"https", "http"} {
		proxy, err := http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: scheme, Host: "anything.snowglobe.test"}})
		if err == nil && proxy != nil && slices.Contains(schemes, proxy.Scheme) {
			addresses = append(addresses, hostPort(proxy))
		}
	}
	return addresses
}

// proxyPorts are those of schemes, which net/http takes where a URL has none.
var proxyPorts = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}

// hostPort returns the address that net/http dials for a URL.
func hostPort(u *url.URL) string {
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), proxyPorts[u.Scheme]))
}
