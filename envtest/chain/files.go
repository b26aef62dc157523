package chain

import (
	"fmt"
	"os"
	"strings"

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
	serving, kubelet, ca := run.SecureServing.ServerCert.CertKey, run.KubeletConfig.TLSClientConfig,
		run.Authentication.RequestHeader.ClientCAFile
	type named struct {
		flag  string
		files []string // of a certificate and its key, or of authorities
	}
	all := []named{
		{"tls-cert-file", []string{serving.CertFile, serving.KeyFile}},
		{"proxy-client-cert-file", []string{run.ProxyClientCertFile, run.ProxyClientKeyFile}},
		{"kubelet-client-certificate", []string{kubelet.CertFile, kubelet.KeyFile}},
		{"requestheader-client-ca-file", []string{ca}},
		{"kubelet-certificate-authority", []string{kubelet.CAFile}},
		{"peer-ca-file", []string{run.PeerCAFile}},
	}
	for _, sni := range run.SecureServing.SNICertKeys {
		all = append(all, named{"tls-sni-cert-key", []string{sni.CertFile, sni.KeyFile}})
	}
	for _, n := range all {
		if strings.Join(n.files, "") == "" {
			continue
		}
		if err := readCertificates(n.files); err != nil {
			return fmt.Errorf("--%s: %w", n.flag, err)
		}
	}
	return nil
}

// readCertificates reads the files of a certificate and its key, or one of authorities.
func readCertificates(files []string) (err error) {
	contents := make([][]byte, len(files))
	for i, file := range files {
		if contents[i], err = os.ReadFile(file); err != nil {
			return err
		}
	}
	if len(files) == 1 {
		_, err = dynamiccertificates.NewStaticCAContent(files[0], contents[0])
	} else {
		_, err = dynamiccertificates.NewStaticCertKeyContent(files[0], contents[0], contents[1])
	}
	if err != nil {
		return fmt.Errorf("%s: %w", strings.Join(files, " and "), err)
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
