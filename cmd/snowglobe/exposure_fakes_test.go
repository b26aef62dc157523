package main

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/memnet"
	"snowglobe.test/fakes/aggregated"
	"snowglobe.test/fakes/etcd"
	"snowglobe.test/fakes/kms"
	"snowglobe.test/fakes/konnectivity"
	"snowglobe.test/fakes/kubelet"
	"snowglobe.test/fakes/oidc"
	"snowglobe.test/fakes/stub"
	"snowglobe.test/fakes/webhook"
	"snowglobe.test/internal/listeners"
	"snowglobe.test/internal/pki"
)

// stopper is a fake that runs.
type stopper interface{ Stop(context.Context) error }

// stoppedEtcd is an etcd that serves on one listener.
type stoppedEtcd struct {
	*etcd.Server
	served chan error
}

func (s stoppedEtcd) Stop(context.Context) error {
	err := s.Close()
	<-s.served
	return err
}

var widgets = []aggregated.Resource{{Group: "example.com", Version: "v1", Plural: "widgets", Kind: "Widget", Namespaced: true}}

// openFakes are all ways to serve a fake that asks no client who it is.
var openFakes = map[string]func(net.Listener) (stopper, error){
	"stub":          func(l net.Listener) (stopper, error) { return stub.Serve(l, http.NotFoundHandler()), nil },
	"stub with TLS": func(l net.Listener) (stopper, error) { return stub.ServeTLS(l, http.NotFoundHandler()) },
	"stub with TLS by an authority": func(l net.Listener) (stopper, error) {
		authority, err := pki.NewAuthority("stub")
		if err != nil {
			return nil, err
		}
		return stub.ServeTLSBy(authority.Certify, l, http.NotFoundHandler())
	},
	"admission":             func(l net.Listener) (stopper, error) { return webhook.ServeAdmission(l) },
	"audit":                 func(l net.Listener) (stopper, error) { return webhook.ServeAudit(l) },
	"conversion":            func(l net.Listener) (stopper, error) { return webhook.ServeConversion(l) },
	"subject access review": func(l net.Listener) (stopper, error) { return webhook.ServeSubjectAccessReview(l) },
	"token review":          func(l net.Listener) (stopper, error) { return webhook.ServeTokenReview(l) },
	"OIDC":                  func(l net.Listener) (stopper, error) { return oidc.Serve(l) },
	"KMS":                   func(l net.Listener) (stopper, error) { return kms.Serve(l, kms.Config{}), nil },
	"kubelet":               func(l net.Listener) (stopper, error) { return kubelet.Serve(l, kubelet.Config{}) },
	"aggregated": func(l net.Listener) (stopper, error) {
		return aggregated.Serve(l, aggregated.Config{Resources: widgets})
	},
	"konnectivity over CONNECT": func(l net.Listener) (stopper, error) { p := konnectivity.New(); p.ServeConnect(l); return p, nil },
	"konnectivity over gRPC":    func(l net.Listener) (stopper, error) { p := konnectivity.New(); p.ServeGRPC(l); return p, nil },
	"konnectivity over TLS": func(l net.Listener) (stopper, error) {
		p := konnectivity.New()
		_, err := p.ServeConnectTLS(l)
		return p, err
	},
	"etcd": func(l net.Listener) (stopper, error) {
		server, err := etcd.New(etcd.Config{})
		if err != nil {
			return nil, err
		}
		s := stoppedEtcd{server, make(chan error, 1)}
		go func() { s.served <- server.Serve(l) }()
		return s, nil
	},
}

// closedFakes are those that ask for client certificates of an authority.
func closedFakes(ca []byte) map[string]func(net.Listener) (stopper, error) {
	return map[string]func(net.Listener) (stopper, error){
		"kubelet": func(l net.Listener) (stopper, error) { return kubelet.Serve(l, kubelet.Config{ClientCA: ca}) },
		"aggregated": func(l net.Listener) (stopper, error) {
			return aggregated.Serve(l, aggregated.Config{Resources: widgets, FrontProxyCA: ca})
		},
	}
}

// listFakes runs each fake in each way in which it can be served. A row has the worst.
func listFakes(t *testing.T) map[string][]listeners.Listener {
	all := map[string][]listeners.Listener{}
	before := listenersOf(t, os.Getpid())
	run := func(row, name string, serve func(net.Listener) (stopper, error), l net.Listener, want exposure) {
		fake, err := serve(l)
		require.NoError(t, err, name)
		t.Cleanup(func() { assert.NoError(t, fake.Stop(context.Background()), name) })
		after := added(t, before)
		assert.Equal(t, want, exposureOf(t, after), "%s: %s", row, name)
		all[row] = append(all[row], after...)
		before = append(before, after...)
	}
	folder := t.TempDir()
	for name, serve := range openFakes {
		run("a fake in memory", name, serve, memnet.Listen(), exposure{nothing, whoProcess})
		tcp, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		run("a fake on a port", name, serve, tcp, exposure{port, whoAnybody})
		path := filepath.Join(folder, name)
		unix, err := net.Listen("unix", path)
		require.NoError(t, err)
		require.NoError(t, os.Chmod(path, 0o777)) // as by the umask 0
		run("a fake on a unix socket", name, serve, unix, exposure{socket, whoAnybody})
	}
	authority, err := pki.NewAuthority("clients")
	require.NoError(t, err)
	for name, serve := range closedFakes(authority.CertPEM()) {
		tcp, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		run("`fakes/kubelet` with `ClientCA`, `fakes/aggregated` with `FrontProxyCA`, on a port", name, serve, tcp, exposure{port, whoCredentials})
	}
	if all["a fake in memory"] == nil {
		all["a fake in memory"] = []listeners.Listener{}
	}
	return all
}
