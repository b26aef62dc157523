package egress

import (
	"encoding/hex"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// targetInfix stands in the name of a proxy behind the host that the proxy is for. Only
// a Network hears such names.
const targetInfix = ".target.snowglobe.test."

// proxyFunc finds the proxy of a request, as http.Transport.Proxy does.
type proxyFunc = func(*http.Request) (*url.URL, error)

// NameProxies has the transport to Pods, Services and nodes name a proxy of its own for each host.
// It carries the Host of the user's request, and net/http asks a proxy for that one, so that
// nothing it says is the address.
func NameProxies(transport *http.Transport) {
	if plain := plainProxies(); plain != nil {
		transport.Proxy = plain
	}
	transport.Proxy = forTargets(transport.Proxy)
}

// forTargets names those that proxies finds.
func forTargets(proxies proxyFunc) proxyFunc {
	return func(req *http.Request) (*url.URL, error) {
		proxy, err := proxies(req)
		if err != nil || proxy == nil || proxy.Scheme != "http" || req.URL.Scheme != "http" {
			return proxy, err
		}
		host, port, err := net.SplitHostPort(hostPort(proxy))
		if err != nil {
			return nil, err
		}
		named := *proxy
		named.Host = net.JoinHostPort(hex.EncodeToString([]byte(hostPort(req.URL)))+targetInfix+host, port)
		return &named, nil
	}
}

// behindTarget returns the host that forTargets has named a proxy for, if any, and the address
// of the proxy.
func behindTarget(address string) (target, proxy string) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", address // a Unix socket's path
	}
	name, host, named := strings.Cut(host, targetInfix)
	decoded, err := hex.DecodeString(name)
	if !named || err != nil {
		return "", address
	}
	return string(decoded), net.JoinHostPort(host, port)
}
