package chain

import (
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/controlplane/reconcilers"

	"snowglobe.test/envtest/chain/upstream"
)

// Some of upstream's constructors start goroutines, or make the storage of all resources, and
// leave that behind if they fail. What they fail for is looked at before.

// preread reads the certificates that upstream loads only when there is something to leave behind.
func preread(run *options.ServerRunOptions) error {
	serving, kubelet := run.SecureServing.ServerCert.CertKey, run.KubeletConfig.TLSClientConfig
	pairs := []struct{ flag, cert, key string }{
		{"tls-cert-file", serving.CertFile, serving.KeyFile},
		{"proxy-client-cert-file", run.ProxyClientCertFile, run.ProxyClientKeyFile},
		{"kubelet-client-certificate", kubelet.CertFile, kubelet.KeyFile},
	}
	for _, sni := range run.SecureServing.SNICertKeys {
		pairs = append(pairs, struct{ flag, cert, key string }{"tls-sni-cert-key", sni.CertFile, sni.KeyFile})
	}
	for _, pair := range pairs {
		if pair.cert == "" && pair.key == "" {
			continue
		}
		if err := readPair(pair.cert, pair.key); err != nil {
			return fmt.Errorf("--%s: %w", pair.flag, err)
		}
	}
	for _, bundle := range []struct{ flag, file string }{
		{"requestheader-client-ca-file", run.Authentication.RequestHeader.ClientCAFile},
		{"kubelet-certificate-authority", kubelet.CAFile},
		{"peer-ca-file", run.PeerCAFile},
	} {
		if bundle.file == "" {
			continue
		}
		if err := readBundle(bundle.file); err != nil {
			return fmt.Errorf("--%s: %w", bundle.flag, err)
		}
	}
	return nil
}

func readPair(certFile, keyFile string) error {
	cert, err := os.ReadFile(certFile)
	if err != nil {
		return err
	}
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return err
	}
	if _, err := dynamiccertificates.NewStaticCertKeyContent(certFile, cert, key); err != nil {
		return fmt.Errorf("%s and %s: %w", certFile, keyFile, err)
	}
	return nil
}

func readBundle(file string) error {
	bundle, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if _, err := dynamiccertificates.NewStaticCAContent(file, bundle); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// checkAdvertised refuses an address that can't be among the endpoints of the service kubernetes.
func checkAdvertised(run *options.ServerRunOptions) error {
	if run.EndpointReconcilerType == string(reconcilers.NoneEndpointReconcilerType) {
		return nil
	}
	address := run.GenericServerRunOptions.AdvertiseAddress.String()
	if err := validation.ValidateEndpointIP(address, field.NewPath("--advertise-address")).ToAggregate(); err != nil {
		return fmt.Errorf("--endpoint-reconciler-type=%s: %w", run.EndpointReconcilerType, err)
	}
	return nil
}

// pollCertificates has a server in virtual time look at the files of certificates now and then.
func (c *Chain) pollCertificates(g *genericStage) error {
	serving := g.config.SecureServing
	if !c.cfg.Virtual || serving == nil {
		return nil
	}
	if c.options.Authentication.RequestHeader.ClientCAFile != "" {
		serving.ClientCA = upstream.PollCA(serving.ClientCA, reloadInterval)
	}
	serving.Cert = upstream.PollPair(serving.Cert, reloadInterval)
	for i, pair := range serving.SNICerts {
		serving.SNICerts[i] = upstream.PollSNI(pair, reloadInterval)
	}
	return nil
}
