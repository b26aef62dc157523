package envtest

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfigs remembers the files that Stop removes.
type kubeconfigs struct {
	mu    sync.Mutex
	paths []string
}

func (k *kubeconfigs) remove() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var errs []error
	for _, path := range k.paths {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove kubeconfig: %w", err))
		}
	}
	k.paths = nil
	return errors.Join(errs...)
}

// WriteKubeconfig writes a kubeconfig of a user in groups to path, mode 0600,
// with a random client certificate. It needs WithListener. Stop removes the
// file. An existing file is not overwritten.
func (cp *ControlPlane) WriteKubeconfig(path, user string, groups ...string) error {
	remote, err := cp.RemoteConfig(user, groups...)
	if err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["snowglobe"] = &clientcmdapi.Cluster{Server: remote.Host, CertificateAuthorityData: remote.CAData}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: remote.CertData, ClientKeyData: remote.KeyData}
	config.Contexts["snowglobe"] = &clientcmdapi.Context{Cluster: "snowglobe", AuthInfo: user}
	config.CurrentContext = "snowglobe"
	content, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("kubeconfig %s exists already; remove it or name another file", path)
	}
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	cp.kube.mu.Lock()
	cp.kube.paths = append(cp.kube.paths, path)
	cp.kube.mu.Unlock()
	_, err = file.Write(content)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	return nil
}

func (cp *ControlPlane) writeKubeconfig() error {
	if cp.cfg.kubeconfig == "" {
		return nil
	}
	return cp.WriteKubeconfig(cp.cfg.kubeconfig, AdminUser, mastersGroup)
}

// upgradeTLS is the client side of the in-memory TLS connection of upgrade
// requests. The user is in the request's token.
func (cp *ControlPlane) upgradeTLS() (*tls.Config, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(cp.authority.CertPEM()) {
		return nil, errors.New("the control plane's own CA is not a certificate")
	}
	return &tls.Config{RootCAs: roots, ServerName: "kubernetes", MinVersion: tls.VersionTLS12}, nil
}
