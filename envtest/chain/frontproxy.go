package chain

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/request/union"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/kubernetes/pkg/controlplane"

	"snowglobe.test/envtest/chain/upstream"
	"snowglobe.test/internal/memfile"
)

// FrontProxy is by which certificate aggregated API servers know the aggregator, which tells them in
// headers who asks. Authority signs it, and the server itself trusts it as they do.
type FrontProxy struct {
	Authority []byte // in PEM
	Client    KeyPair
}

// KeyPair is a certificate and its key, PEM encoded.
type KeyPair struct{ Cert, Key []byte }

// FrontProxyName is the common name of the client certificate. It and the headers are kubeadm's.
const FrontProxyName = "front-proxy-client"

// frontProxyFlags are those of a user's own front proxy, beside which there is no other.
var frontProxyFlags = []string{
	"requestheader-client-ca-file", "requestheader-allowed-names", "requestheader-username-headers", "requestheader-uid-headers",
	"requestheader-group-headers", "requestheader-extra-headers-prefix", "proxy-client-cert-file", "proxy-client-key-file",
}

// reloadProxyCertificateHook is the hook of the aggregator that watches the files of --proxy-client-cert-file.
const reloadProxyCertificateHook = "aggregator-reload-proxy-client-cert"

func (c *Chain) ownFrontProxy() bool { return !c.cfg.Flags.frontProxy }

func requestHeaders(authority []byte) (*authenticatorfactory.RequestHeaderConfig, error) {
	ca, err := dynamiccertificates.NewStaticCAContent("front-proxy-ca", authority)
	if err != nil {
		return nil, fmt.Errorf("front proxy: %w", err)
	}
	return &authenticatorfactory.RequestHeaderConfig{
		UsernameHeaders:     headerrequest.StaticStringSlice{"X-Remote-User"},
		UIDHeaders:          headerrequest.StaticStringSlice{"X-Remote-Uid"},
		GroupHeaders:        headerrequest.StaticStringSlice{"X-Remote-Group"},
		ExtraHeaderPrefixes: headerrequest.StaticStringSlice{"X-Remote-Extra-"},
		CAContentProvider:   ca,
		AllowedClientNames:  headerrequest.StaticStringSlice{FrontProxyName},
	}, nil
}

// applyFrontProxy authenticates what the front proxy asks in the name of others, as flags would. It
// comes first, as it does there.
func (c *Chain) applyFrontProxy(g *genericStage) error {
	if !c.ownFrontProxy() {
		return nil
	}
	headers, err := requestHeaders(c.cfg.FrontProxy.Authority)
	if err != nil {
		return err
	}
	to := &g.config.Authentication
	to.RequestHeaderConfig = headers
	if err := to.ApplyClientCert(headers.CAContentProvider, g.config.SecureServing); err != nil {
		return err
	}
	proxied := headerrequest.NewDynamicVerifyOptionsSecure(headers.CAContentProvider.VerifyOptions, headers.AllowedClientNames,
		headers.UsernameHeaders, headers.UIDHeaders, headers.GroupHeaders, headers.ExtraHeaderPrefixes)
	to.Authenticator = union.New(group.NewAuthenticatedGroupAdder(authenticator.WrapAudienceAgnosticRequest(to.APIAudiences, proxied)), to.Authenticator)
	return nil
}

// publishFrontProxy has the server write what aggregated API servers have to trust.
func (c *Chain) publishFrontProxy(config *controlplane.Config) {
	info := &config.ControlPlane.Extra.ClusterAuthenticationInfo
	if !c.ownFrontProxy() {
		if c.cfg.Virtual {
			info.RequestHeaderCA = upstream.PollCA(info.RequestHeaderCA, reloadInterval)
		}
		return
	}
	headers := c.generic.config.Authentication.RequestHeaderConfig
	info.RequestHeaderCA, info.RequestHeaderAllowedNames = headers.CAContentProvider, headers.AllowedClientNames
	info.RequestHeaderUsernameHeaders, info.RequestHeaderUIDHeaders = headers.UsernameHeaders, headers.UIDHeaders
	info.RequestHeaderGroupHeaders, info.RequestHeaderExtraHeaderPrefixes = headers.GroupHeaders, headers.ExtraHeaderPrefixes
}

// withoutReload ends what would watch the files of the certificate: they are gone, or are watched by
// the operating system, for which virtual time can't wait.
func withoutReload(hook genericapiserver.PostStartHookFunc) genericapiserver.PostStartHookFunc {
	return func(ctx genericapiserver.PostStartHookContext) error {
		ended, end := context.WithCancel(ctx)
		end()
		ctx.Context = ended
		return hook(ctx)
	}
}

// lendFrontProxy gives the aggregator its certificate, which it reads from files when it is made, and
// would watch then. They are gone when forget returns.
func (c *Chain) lendFrontProxy() (forget func() error, err error) {
	if !c.ownFrontProxy() {
		return func() error { return nil }, nil
	}
	extra, client := &c.configs.aggregator.ExtraConfig, c.cfg.FrontProxy.Client
	cert, err := memfile.New("front-proxy-cert", client.Cert)
	if err != nil {
		return nil, err
	}
	key, err := memfile.New("front-proxy-key", client.Key)
	if err != nil {
		return nil, errors.Join(err, cert.Remove())
	}
	extra.ProxyClientCertFile, extra.ProxyClientKeyFile = cert.Path(), key.Path()
	return func() error { return errors.Join(cert.Remove(), key.Remove()) }, nil
}
