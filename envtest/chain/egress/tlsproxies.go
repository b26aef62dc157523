package egress

import (
	"net"
	"net/http"
	"net/url"
	"strings"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// tlsProxySuffix ends the names by which clients dial a proxy of "https" without TLS. Only
// a Network hears them.
const tlsProxySuffix = ".proxy.snowglobe.test"

// plainProxies finds the proxies of the environment for clients that take another function
// than theirs. Instead of one of "https" it names one of "http", so that they say for whom
// they come before anybody speaks TLS. It is nil if there are no such proxies.
func plainProxies() proxyFunc {
	if len(environmentProxies("https")) == 0 {
		return nil
	}
	return utilnet.NewProxierWithNoProxyCIDR(func(req *http.Request) (*url.URL, error) {
		proxy, err := http.ProxyFromEnvironment(req)
		if err != nil || proxy == nil || proxy.Scheme != "https" {
			return proxy, err
		}
		host, port, err := net.SplitHostPort(hostPort(proxy))
		if err != nil {
			return nil, err
		}
		plain := *proxy
		plain.Scheme, plain.Host = "http", net.JoinHostPort(host+tlsProxySuffix, port)
		return &plain, nil
	})
}

// behindPlainName returns the name and the address of a proxy that plainProxies has given
// another name.
func behindPlainName(address string) (name, proxy string, ok bool) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", "", false // a Unix socket's path
	}
	name, ok = strings.CutSuffix(host, tlsProxySuffix)
	return name, net.JoinHostPort(name, port), ok
}

// PastTLSProxies has the client of a webhook of admission or conversion go by plainProxies.
func PastTLSProxies(config *rest.Config) {
	if proxies := plainProxies(); proxies != nil && config.Proxy == nil {
		config.Proxy = proxies
	}
}
