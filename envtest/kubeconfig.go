package envtest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"snowglobe.test/envtest/trace"
	"snowglobe.test/internal/diskerr"
)

// writeKubeconfig writes the file of WithKubeconfig, mode 0600, with a random
// client certificate. It overwrites nothing.
func (cp *ControlPlane) writeKubeconfig() error {
	path := cp.cfg.kubeconfig
	if path == "" {
		return nil
	}
	remote, err := cp.client.remoteConfig(newCredentials(nil))
	if err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["snowglobe"] = &clientcmdapi.Cluster{Server: remote.Host, CertificateAuthorityData: remote.CAData, TLSServerName: remote.ServerName}
	config.AuthInfos[trace.AdminUser] = &clientcmdapi.AuthInfo{ClientCertificateData: remote.CertData, ClientKeyData: remote.KeyData}
	config.Contexts["snowglobe"] = &clientcmdapi.Context{Cluster: "snowglobe", AuthInfo: trace.AdminUser}
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
		return fmt.Errorf("kubeconfig: %w", diskerr.OrSame(filepath.Dir(path), err))
	}
	cp.kubeconfig = path
	_, err = file.Write(content)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("kubeconfig: %w", diskerr.OrSame(filepath.Dir(path), err))
	}
	return nil
}

// removeKubeconfig removes the file that was written, if one was.
func (cp *ControlPlane) removeKubeconfig() error {
	if cp.kubeconfig == "" {
		return nil
	}
	if err := os.Remove(cp.kubeconfig); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove kubeconfig: %w", err)
	}
	cp.kubeconfig = ""
	return nil
}
