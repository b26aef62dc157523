package envtest

//lint:file-ignore SA1019 deprecated fields are honoured, or refused with what to do instead

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"snowglobe.test/envtest/client"
)

// options are what the fields of the environment come to, or why they can't be honoured.
func (te *Environment) options() ([]client.Option, error) {
	start, startErr := timeoutOf(te.ControlPlaneStartTimeout, "KUBEBUILDER_CONTROLPLANE_START_TIMEOUT")
	stop, stopErr := timeoutOf(te.ControlPlaneStopTimeout, "KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT")
	arguments, err := te.arguments()
	if err := errors.Join(te.refuse(), err, startErr, stopErr); err != nil {
		return nil, err
	}
	opts := []client.Option{client.WithTimeouts(start, stop), client.WithArguments(arguments...)}
	return append(opts, te.Options...), nil
}

// issuer is the issuer of tokens if no flag says otherwise. Controller-runtime names the address
// of the server, which is not known here before it listens.
const issuer = "https://kubernetes.default.svc.cluster.local"

// arguments are those that controller-runtime would start kube-apiserver with: those of
// Configure on envtest's defaults, and those of the deprecated Args that are not among envtest's
// own. The key of service accounts is the server's own, so that another suite can have it.
func (te *Environment) arguments() ([]string, error) {
	server := te.ControlPlane.GetAPIServer()
	serving := &server.SecureServing
	serving.Address = cmp.Or(serving.Address, "127.0.0.1")
	if server.SecurePort != 0 {
		serving.Port = strconv.Itoa(server.SecurePort)
	}
	serving.Port = cmp.Or(serving.Port, "0")
	if _, err := strconv.ParseUint(serving.Port, 10, 16); err != nil {
		return nil, fmt.Errorf("ControlPlane.APIServer.SecureServing.Port %q is not a port", serving.Port)
	}
	defaults := map[string][]string{
		"service-cluster-ip-range":  {"10.0.0.0/24"},
		"allow-privileged":          {"true"},
		"disable-admission-plugins": {"ServiceAccount"},
		"authorization-mode":        {"RBAC"},
		"service-account-issuer":    {issuer},
		"bind-address":              {serving.Address},
		"secure-port":               {serving.Port},
	}
	if server.CertDir != "" {
		defaults["cert-dir"] = []string{server.CertDir}
	}
	var more []string
	for _, arg := range server.Args {
		if arg == "" || slices.Contains(DefaultKubeAPIServerFlags, arg) {
			continue
		}
		more = append(more, arg)
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		delete(defaults, name) // Args come without it, there too
	}
	// No release since v1.24 has this flag; envtest asks the program, and never passes it then.
	return append(server.Configure().Disable("insecure-port").AsStrings(defaults), more...), nil
}

// refuse names what can't be honoured.
func (te *Environment) refuse() error {
	server, etcd := te.ControlPlane.GetAPIServer(), te.ControlPlane.Etcd
	const inMemory = "the store is in memory: remove it"
	var errs []error
	for _, field := range []struct {
		name    string
		set     bool
		instead string
	}{
		{"ControlPlane.APIServer.Path", server.Path != "", "the program is snowglobe: remove it"},
		{"ControlPlane.APIServer.URL", server.URL != nil, "kube-apiserver serves TLS only: set SecureServing"},
		{"ControlPlane.APIServer.InsecureServing", server.InsecureServing != nil, "kube-apiserver serves TLS only: set SecureServing"},
		{"ControlPlane.APIServer.EtcdURL", server.EtcdURL != nil, inMemory},
		{"ControlPlane.APIServer.SecureServing.Authn", server.Authn != nil, "add users with AddUser, or set kube-apiserver's flags with Configure"},
		{"ControlPlane.Etcd.Path", etcd != nil && etcd.Path != "", inMemory},
		{"ControlPlane.Etcd.URL", etcd != nil && etcd.URL != nil, inMemory},
		{"ControlPlane.Etcd.DataDir", etcd != nil && etcd.DataDir != "", inMemory},
		{"ControlPlane.Etcd's flags", etcd != nil && (len(etcd.Args) > 0 || len(etcd.Configure().AsStrings(nil)) > 0), inMemory},
	} {
		if field.set {
			errs = append(errs, fmt.Errorf("%s can't be honoured: %s", field.name, field.instead))
		}
	}
	return errors.Join(errs...)
}

func (te *Environment) checkRelease() error {
	wanted, has := strings.TrimPrefix(te.DownloadBinaryAssetsVersion, "v"), te.launched.Release()
	if wanted != "" && wanted != strings.TrimPrefix(has, "v") {
		return fmt.Errorf("DownloadBinaryAssetsVersion %s can't be honoured: this is kube-apiserver %s", te.DownloadBinaryAssetsVersion, has)
	}
	return nil
}

// output is where the log goes, nil for nowhere.
func (te *Environment) output() io.Writer {
	server := te.ControlPlane.GetAPIServer()
	switch {
	case server.Err != nil: // kube-apiserver logs to it
		return server.Err
	case server.Out != nil:
		return server.Out
	case te.AttachControlPlaneOutput || os.Getenv("KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT") == "true":
		return os.Stderr
	}
	return nil
}

// timeoutOf is a field, or else an environment variable, or else 0.
func timeoutOf(field time.Duration, variable string) (time.Duration, error) {
	text := os.Getenv(variable)
	if field != 0 || text == "" {
		return field, nil
	}
	timeout, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%s=%q: %w", variable, text, err)
	}
	return timeout, nil
}

// describe fills in what ControlPlane tells after Start: address, authority and users, the folder
// of their kubeconfigs, and the kubectl that reads these.
func (te *Environment) describe() error {
	config := te.launched.Config()
	at, err := url.Parse(config.Host)
	if err != nil {
		return err
	}
	server := te.ControlPlane.GetAPIServer()
	te.asked = server.SecureServing.ListenAddr
	server.SecureServing.Address, server.SecureServing.Port = at.Hostname(), at.Port()
	server.SecureServing.CA, server.SecureServing.Authn = config.CAData, certificates{te.launched}
	if server.CertDir == "" {
		if te.certDir, err = os.MkdirTemp("", "snowglobe-certificates-"); err != nil {
			return err
		}
		server.CertDir = te.certDir
	}
	if te.ControlPlane.KubectlPath == "" {
		te.ControlPlane.KubectlPath = kubectl(te.BinaryAssetsDirectory)
	}
	return nil
}

// forget is for the next Start: another test may have this server then, at its address.
func (te *Environment) forget() {
	serving := &te.ControlPlane.APIServer.SecureServing
	serving.ListenAddr, serving.Authn = te.asked, nil
}

// removeCertDir removes the folder that describe has made.
func (te *Environment) removeCertDir() error {
	if te.certDir == "" {
		return nil
	}
	made := te.certDir
	te.certDir, te.ControlPlane.APIServer.CertDir = "", ""
	return os.RemoveAll(made)
}

// kubectl finds the program where controller-runtime does, or in PATH.
func kubectl(assets string) string {
	for _, path := range []string{
		os.Getenv("TEST_ASSET_KUBECTL"),
		filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"),
		filepath.Join(assets, "kubectl"),
	} {
		if found, err := exec.LookPath(path); err == nil && filepath.Base(path) != path {
			return found
		}
	}
	return "kubectl"
}

// certificates is the Authn of a control plane: it makes client certificates.
type certificates struct{ of *client.ControlPlane }

// Configure implements Authn, and Start and Stop do.
func (certificates) Configure(string, *Arguments) error { return nil }

// Start implements Authn.
func (certificates) Start() error { return nil }

// Stop implements Authn.
func (certificates) Stop() error { return nil }

// AddUser implements Authn.
func (c certificates) AddUser(user User, base *rest.Config) (*rest.Config, error) {
	remote, err := c.of.AddUser(context.Background(), user.Name, user.Groups...)
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(base)
	config.CertData, config.KeyData = remote.CertData, remote.KeyData
	return config, nil
}
