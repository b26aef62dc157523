package envtest_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/memnet"
	"snowglobe.test/envtest/virtualtime"
	"snowglobe.test/fakes/konnectivity"
	"snowglobe.test/fakes/webhook"
	"snowglobe.test/internal/pki"
)

const (
	proxiedHost = "labels.example.com"
	proxyHost   = "tunnel.example.com"
)

// proxyWay is a way to a proxy.
type proxyWay struct {
	connection string                                        // of the egress selection
	address    string                                        // at which the proxy is
	serve      func(*konnectivity.Proxy, net.Listener) error // nil for no proxy
}

// TestProxies has an egress selector reach a webhook through a proxy in memory.
func TestProxies(t *testing.T) {
	folder := t.TempDir()
	for name, way := range map[string]proxyWay{
		"HTTP CONNECT": {
			connection: "{proxyProtocol: HTTPConnect, transport: {uds: {udsName: /tunnel}}}", address: "unix /tunnel",
			serve: func(p *konnectivity.Proxy, l net.Listener) error { p.ServeConnect(l); return nil },
		},
		"gRPC": {
			connection: "{proxyProtocol: GRPC, transport: {uds: {udsName: /tunnel}}}", address: "unix /tunnel",
			serve: func(p *konnectivity.Proxy, l net.Listener) error { p.ServeGRPC(l); return nil },
		},
		"HTTP CONNECT over TLS": {
			connection: fmt.Sprintf("{proxyProtocol: HTTPConnect, transport: {tcp: {url: 'https://%s:8131', tlsConfig: {caBundle: %[2]s/ca.crt, clientCert: %[2]s/client.crt, clientKey: %[2]s/client.key}}}}", proxyHost, folder),
			address:    "tcp " + proxyHost + ":8131",
			serve: func(p *konnectivity.Proxy, l net.Listener) error {
				ca, err := p.ServeConnectTLS(l, proxyHost)
				if err != nil {
					return err
				}
				return writeClient(folder, ca)
			},
		},
		"directly": {connection: "{proxyProtocol: Direct}"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "egress.yaml")
			require.NoError(t, os.WriteFile(file, []byte(`apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections: [{name: controlplane, connection: `+way.connection+`}]
`), 0o600))
			require.NoError(t, virtualtime.Bubble(func() error { return way.use(t, file) }))
		})
	}
}

// use calls a webhook this way.
func (w proxyWay) use(t *testing.T, file string) error {
	hooks, tunnels := memnet.Listen(), memnet.Listen()
	hook, err := webhook.ServeAdmission(hooks, proxiedHost)
	if err != nil {
		return err
	}
	hook.Requests.Use(webhook.AdmissionRule{Answer: webhook.Mutate(func(object *unstructured.Unstructured) error {
		object.SetLabels(map[string]string{"seen": "yes"})
		return nil
	})})
	proxy := konnectivity.New()
	proxy.Route(proxiedHost+":443", hooks.DialNetwork)
	if w.serve != nil {
		if err := w.serve(proxy, tunnels); err != nil {
			return err
		}
	}
	cp, err := envtest.Launch(context.Background(), envtest.WithFlags("--egress-selector-config-file="+file),
		envtest.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			switch at := network + " " + address; {
			case at == w.address:
				return tunnels.DialContext(ctx)
			case w.serve == nil && at == "tcp "+proxiedHost+":443":
				return hooks.DialContext(ctx)
			default:
				return nil, fmt.Errorf("no server is at %s", at)
			}
		}))
	if err != nil {
		return err
	}
	mutated(t, cp, hook)
	assert.Equal(t, w.serve != nil, len(proxy.Tunnels()) > 0)
	assert.NoError(t, cp.Stop(context.Background()))
	assert.NoError(t, proxy.Stop(context.Background()))
	return hook.Stop(context.Background())
}

// writeClient writes what a client needs of a proxy over TLS.
func writeClient(folder string, ca []byte) error {
	authority, err := pki.NewAuthority("clients")
	if err != nil {
		return err
	}
	pair, err := authority.Client("kube-apiserver")
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{"ca.crt": ca, "client.crt": pair.Cert, "client.key": pair.Key} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}
