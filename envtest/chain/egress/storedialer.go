package egress

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	genericoptions "k8s.io/apiserver/pkg/server/options"

	"snowglobe.test/envtest/fault/edge"
	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/storage/intercept"
)

// StoreDialer connects upstream's own etcd clients, of the few callers that insist
// on one, to the store, by a proxy where their calls meet the rules.
type StoreDialer struct {
	store   *intercept.Connection
	dial    storage.Dialer           // nil: as flags say
	proxy   *intercept.Proxy         // nil if nothing can be injected
	servers []string                 // what upstream's clients are told to be the store
	members map[string]memberAddress // behind the proxy, by the address that they dial
}

// memberAddress is where a member of the store is.
type memberAddress struct{ network, address string }

// NewStoreDialer returns nil if nothing can be injected and only gRPC can dial the
// store, a socket of the file system.
func NewStoreDialer(
	endpoints storage.Endpoints, store *intercept.Connection, injector *edge.Injector,
) (*StoreDialer, error) {
	d := &StoreDialer{store: store, dial: endpoints.Dial, members: map[string]memberAddress{}}
	secure := false
	for i, endpoint := range endpoints.URLs {
		u, err := url.Parse(endpoint)
		if err != nil {
			return nil, fmt.Errorf("address of the store: %w", err)
		}
		name, at := u.Host, memberAddress{"tcp", u.Host}
		if u.Scheme == "unix" {
			if injector == nil {
				return nil, nil
			}
			name, at = fmt.Sprintf("etcd-%d.socket:2379", i), memberAddress{"unix", u.Host + u.Path}
		}
		d.servers, d.members[name] = append(d.servers, "http://"+name), at
		secure = secure || u.Scheme == "https"
	}
	if injector == nil {
		return d, nil
	}
	d.proxy = &intercept.Proxy{Injector: injector}
	if !secure {
		return d, nil
	}
	info := transport.TLSInfo{CertFile: endpoints.CertFile, KeyFile: endpoints.KeyFile, TrustedCAFile: endpoints.CAFile}
	var err error
	if d.proxy.TLS, err = info.ClientConfig(); err != nil {
		return nil, fmt.Errorf("TLS files of the store: %w", err)
	}
	return d, nil
}

// Proxied returns the addresses, of the form host:port, by which upstream's clients dial the
// members of the store through a proxy; none if no rule can be in the way.
func (d *StoreDialer) Proxied() (addresses []string) {
	if d == nil || d.proxy == nil {
		return nil
	}
	for _, server := range d.servers {
		addresses = append(addresses, strings.TrimPrefix(server, "http://"))
	}
	return addresses
}

// Unwrap points upstream's clients at the proxy, in plain text; it speaks TLS to
// members. If flags name other stores too, TLS stays upstream's, without the proxy.
func (d *StoreDialer) Unwrap(etcd *genericoptions.EtcdOptions) {
	switch {
	case d == nil, d.proxy == nil:
	case d.proxy.TLS != nil && len(etcd.EtcdServersOverrides) > 0:
		clear(d.members)
	default:
		config := &etcd.StorageConfig.Transport
		config.ServerList = d.servers
		config.CertFile, config.KeyFile, config.TrustedCAFile = "", "", ""
	}
}

// Through returns the dialer of upstream's clients: dial, if the store has none.
func (d *StoreDialer) Through(dial utilnet.DialFunc) utilnet.DialFunc {
	if d.dial == nil {
		d.dial = storage.Dialer(dial)
	}
	straight := d.store.Dialer(d.dial)
	if d.proxy == nil {
		return utilnet.DialFunc(straight)
	}
	d.proxy.Dial = straight
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if member, ok := d.members[address]; ok {
			return d.proxy.DialContext(ctx, member.network, member.address)
		}
		return straight(ctx, network, address) // named by --etcd-servers-overrides
	}
}

// Stop makes calls through the proxy fail fast: the server stops.
func (d *StoreDialer) Stop() {
	if d != nil && d.proxy != nil {
		d.proxy.FailFast()
	}
}

// End breaks off what is left.
func (d *StoreDialer) End(ctx context.Context) error {
	if d == nil || d.proxy == nil {
		return nil
	}
	return d.proxy.Close(ctx)
}
