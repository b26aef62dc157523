package chain

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"strings"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/server/egressselector"
	"k8s.io/client-go/transport"

	"snowglobe.test/fakes/konnectivity"
)

// proxied is Config.Dial, through the proxy that flags name for a network, if they do.
// Upstream's dialer would reach the proxy through the network of the machine, whatever
// Config.Dial says. The file has been validated.
func (c *Chain) proxied(network egressselector.EgressType) (utilnet.DialFunc, error) {
	config, err := egressselector.ReadEgressSelectorConfiguration(c.options.EgressSelector.ConfigFile)
	if err != nil {
		return nil, err
	}
	if config == nil {
		return c.cfg.Dial, nil
	}
	for _, selection := range config.EgressSelections {
		if strings.EqualFold(selection.Name, network.String()) {
			return c.through(selection.Connection)
		}
	}
	return c.cfg.Dial, nil
}

// through is the dialer of one egress selection.
func (c *Chain) through(connection apiserver.Connection) (utilnet.DialFunc, error) {
	if connection.ProxyProtocol == apiserver.ProtocolDirect {
		return c.cfg.Dial, nil
	}
	reach, err := c.proxy(connection.Transport)
	if err != nil {
		return nil, err
	}
	if connection.ProxyProtocol == apiserver.ProtocolGRPC {
		return konnectivity.DialGRPC(reach), nil
	}
	return konnectivity.DialConnect(reach), nil
}

// proxy returns what connects to a proxy, TLS included.
func (c *Chain) proxy(to *apiserver.Transport) (func(context.Context) (net.Conn, error), error) {
	if to.UDS != nil {
		return func(ctx context.Context) (net.Conn, error) { return c.cfg.Dial(ctx, "unix", to.UDS.UDSName) }, nil
	}
	location, err := url.Parse(to.TCP.URL)
	if err != nil {
		return nil, err
	}
	plain := func(ctx context.Context) (net.Conn, error) { return c.cfg.Dial(ctx, "tcp", location.Host) }
	if to.TCP.TLSConfig == nil {
		return plain, nil
	}
	config, err := proxyTLS(to.TCP.TLSConfig, location.Hostname())
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (net.Conn, error) {
		conn, err := plain(ctx)
		if err != nil {
			return nil, err
		}
		secure := tls.Client(conn, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, err
		}
		return secure, nil
	}, nil
}

// proxyTLS reads the files that a configuration names.
func proxyTLS(files *apiserver.TLSConfig, host string) (*tls.Config, error) {
	config, err := transport.TLSConfigFor(&transport.Config{TLS: transport.TLSConfig{
		CertFile: files.ClientCert, KeyFile: files.ClientKey, CAFile: files.CABundle, ServerName: cmp.Or(files.TLSServerName, host),
	}})
	if err != nil {
		return nil, fmt.Errorf("%s, %s, %s: %w", files.ClientCert, files.ClientKey, files.CABundle, err)
	}
	return config, nil
}
