package bench

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// access is how a server is reached and logged in to: what of a rest.Config can be told to
// another process, perhaps on another machine.
type access struct {
	Host, APIPath             string
	Token, Username, Password string
	Impersonate               rest.ImpersonationConfig
	TLS                       rest.TLSClientConfig     // with what is in its files
	Exec                      *clientcmdapi.ExecConfig // a program that the other machine has to have
}

func (a *access) config() *rest.Config {
	if a == nil {
		return nil
	}
	return &rest.Config{
		Host: a.Host, APIPath: a.APIPath, BearerToken: a.Token, Username: a.Username, Password: a.Password,
		Impersonate: a.Impersonate, TLSClientConfig: a.TLS, ExecProvider: a.Exec,
	}
}

// accessOf reads the files of a configuration, which the other machine does not have.
func accessOf(config *rest.Config) (*access, error) {
	if config == nil {
		return nil, nil
	}
	if config.AuthProvider != nil || config.Proxy != nil {
		return nil, errors.New("clients in other processes know neither an auth-provider nor a proxy-url of a kubeconfig: use one without")
	}
	config = rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("read the certificates of the kubeconfig: %w", err)
	}
	token := config.BearerToken
	if config.BearerTokenFile != "" {
		text, err := os.ReadFile(config.BearerTokenFile)
		if err != nil {
			return nil, fmt.Errorf("read the token of the kubeconfig: %w", err)
		}
		token = cmp.Or(strings.TrimSpace(string(text)), token)
	}
	a := &access{
		Host: config.Host, APIPath: config.APIPath, Token: token, Username: config.Username, Password: config.Password,
		Impersonate: config.Impersonate, TLS: config.TLSClientConfig, Exec: config.ExecProvider,
	}
	a.TLS.CAFile, a.TLS.CertFile, a.TLS.KeyFile = "", "", ""
	return a, nil
}

// accesses are how another process reaches the servers.
func (r reached) accesses() (all []*access, err error) {
	for _, server := range r.servers {
		one, failed := accessOf(server)
		all, err = append(all, one), errors.Join(err, failed)
	}
	return all, err
}

func reachedBy(servers []*access) (to reached) {
	for _, server := range servers {
		to.servers = append(to.servers, server.config())
	}
	return to
}
