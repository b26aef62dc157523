package egress

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

// Selected is a dialer, through the proxy that the file of --egress-selector-config-file names
// for a network, if it does. Upstream's dialer would reach the proxy through the network of the
// machine, whatever the dialer. The file has been validated; empty is none.
func Selected(file string, network egressselector.EgressType, dial utilnet.DialFunc) (utilnet.DialFunc, error) {
	config, err := egressselector.ReadEgressSelectorConfiguration(file)
	if err != nil {
		return nil, err
	}
	if config == nil {
		return dial, nil
	}
	for _, selection := range config.EgressSelections {
		if strings.EqualFold(selection.Name, network.String()) {
			return through(selection.Connection, dial)
		}
	}
	return dial, nil
}

// through is the dialer of one egress selection.
func through(connection apiserver.Connection, dial utilnet.DialFunc) (utilnet.DialFunc, error) {
	if connection.ProxyProtocol == apiserver.ProtocolDirect {
		return dial, nil
	}
	reach, err := proxyOf(connection.Transport, dial)
	if err != nil {
		return nil, err
	}
	if connection.ProxyProtocol == apiserver.ProtocolGRPC {
		return konnectivity.DialGRPC(reach), nil
	}
	return konnectivity.DialConnect(reach), nil
}

// proxyOf returns what connects to a proxy, TLS included.
func proxyOf(to *apiserver.Transport, dial utilnet.DialFunc) (func(context.Context) (net.Conn, error), error) {
	if to.UDS != nil {
		return func(ctx context.Context) (net.Conn, error) { return dial(ctx, "unix", to.UDS.UDSName) }, nil
	}
	location, err := url.Parse(to.TCP.URL)
	if err != nil {
		return nil, err
	}
	plain := func(ctx context.Context) (net.Conn, error) { return dial(ctx, "tcp", location.Host) }
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
