package envtest

//lint:file-ignore SA1019 deprecated fields are honoured, or refused with what to do instead

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/controllerruntime/arguments"
	"snowglobe.test/envtest/linked"
	"snowglobe.test/envtest/serverflags"
	"snowglobe.test/internal/pki"
	"snowglobe.test/internal/tempdir"
)

// options are what the fields of the environment come to, or why they can't be honoured.
func (te *Environment) options() ([]envtest.Option, error) {
	start, startErr := timeoutOf(te.ControlPlaneStartTimeout, "KUBEBUILDER_CONTROLPLANE_START_TIMEOUT")
	stop, stopErr := timeoutOf(te.ControlPlaneStopTimeout, "KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT")
	process, err := te.process()
	if err := errors.Join(te.refuse(), err, startErr, stopErr); err != nil {
		return nil, err
	}
	server := te.ControlPlane.GetAPIServer()
	address := net.JoinHostPort(cmp.Or(process.BindAddress, "127.0.0.1"), strconv.Itoa(process.SecurePort))
	opts := []envtest.Option{envtest.WithListener(address), envtest.WithTimeouts(start, stop), envtest.WithFlags(process.Flags...)}
	if os.Getenv("KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT") == "true" {
		te.AttachControlPlaneOutput = true
	}
	if te.AttachControlPlaneOutput && server.Err == nil {
		server.Err = os.Stderr
	}
	for _, log := range []io.Writer{server.Err, server.Out} { // kube-apiserver logs to the first
		if log != nil {
			opts = append(opts, envtest.WithLog(log))
			break
		}
	}
	return append(opts, te.Options...), nil
}

// noEtcd is where controller-runtime's etcd would be.
const noEtcd = "http://127.0.0.1:0"

// process is what the arguments ask for that controller-runtime would start kube-apiserver with.
func (te *Environment) process() (*serverflags.Process, error) {
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
	process, err := serverflags.ParseProcess(arguments.Of(server, noEtcd))
	if err != nil {
		return nil, fmt.Errorf("kube-apiserver flags: %w", err)
	}
	if err := process.Missing(); err != nil {
		return nil, fmt.Errorf("kube-apiserver flags: %w", err)
	}
	if !slices.Equal(process.EtcdServers, []string{noEtcd}) {
		return nil, errors.New("--etcd-servers can't be honoured: set Options to envtest.WithStore(external.New(...))")
	}
	return process, nil
}

// refuse names what can't be honoured.
func (te *Environment) refuse() error {
	server, etcd := te.ControlPlane.GetAPIServer(), te.ControlPlane.Etcd
	var errs []error
	for _, field := range []struct {
		name    string
		set     bool
		instead string
	}{
		{"ControlPlane.APIServer.Path", server.Path != "", "the API server is linked: remove it"},
		{"ControlPlane.APIServer.URL", server.URL != nil, "kube-apiserver serves TLS only: set SecureServing"},
		{"ControlPlane.APIServer.InsecureServing", server.InsecureServing != nil, "kube-apiserver serves TLS only: set SecureServing"},
		{"ControlPlane.APIServer.EtcdURL", server.EtcdURL != nil, "set Options to envtest.WithStore(external.New(...))"},
		{"ControlPlane.APIServer.SecureServing.Authn", server.Authn != nil, "add users with AddUser, or set kube-apiserver's flags with Configure"},
		{"ControlPlane.Etcd.Path", etcd != nil && etcd.Path != "", "the store is in memory: remove it, or set Options to envtest.WithStore(...)"},
		{"ControlPlane.Etcd.URL", etcd != nil && etcd.URL != nil, "the store is in memory: set Options to envtest.WithStore(external.New(...)) for one at an address"},
		{"ControlPlane.Etcd.DataDir", etcd != nil && etcd.DataDir != "", "the store is in memory: set Options to envtest.WithStore(embedded.New(...)) for one in a folder"},
		{"ControlPlane.Etcd's flags", etcd != nil && (len(etcd.Args) > 0 || len(etcd.Configure().AsStrings(nil)) > 0), "the store is in memory and has none: remove them"},
		{"DownloadBinaryAssetsVersion " + te.DownloadBinaryAssetsVersion, te.wantsOtherRelease(),
			"kube-apiserver " + linked.Release() + " is linked"},
	} {
		if field.set {
			errs = append(errs, fmt.Errorf("%s can't be honoured: %s", field.name, field.instead))
		}
	}
	return errors.Join(errs...)
}

func (te *Environment) wantsOtherRelease() bool {
	wanted := strings.TrimPrefix(te.DownloadBinaryAssetsVersion, "v")
	return wanted != "" && wanted != strings.TrimPrefix(linked.Release(), "v")
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

// describe fills in what ControlPlane tells after Start: address, authority and users, and the
// kubectl that reads their kubeconfigs.
func (te *Environment) describe() error {
	users := certificates{te.launched.Servers()[0]}
	config := users.server.Config(envtest.Remote())
	at, err := url.Parse(config.Host)
	if err != nil {
		return err
	}
	server := te.ControlPlane.GetAPIServer()
	server.SecureServing.Address, server.SecureServing.Port = at.Hostname(), at.Port()
	server.SecureServing.CA, server.SecureServing.Authn = config.CAData, users
	if te.ControlPlane.KubectlPath == "" {
		te.ControlPlane.KubectlPath = kubectl(te.BinaryAssetsDirectory)
	}
	return nil
}

// makeCertDir fills in the folder of certificates, with the key pair that controller-runtime
// makes for the tokens of service accounts.
func (te *Environment) makeCertDir() (err error) {
	server := te.ControlPlane.GetAPIServer()
	if server.CertDir == "" {
		if te.certDir, err = tempdir.Make("certificates"); err != nil {
			return err
		}
		server.CertDir = te.certDir.Path()
	}
	if _, err := os.Stat(filepath.Join(server.CertDir, arguments.AccountKeyFile)); err == nil {
		return nil
	}
	signer, err := pki.NewAuthority("service-accounts")
	if err != nil {
		return err
	}
	key, err := signer.KeyPEM()
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(server.CertDir, arguments.AccountCertFile), signer.CertPEM(), 0o600),
		os.WriteFile(filepath.Join(server.CertDir, arguments.AccountKeyFile), key, 0o600),
	)
}

// removeCertDir removes the folder that makeCertDir has made.
func (te *Environment) removeCertDir() error {
	if te.certDir == nil {
		return nil
	}
	made := te.certDir
	te.certDir, te.ControlPlane.APIServer.CertDir = nil, ""
	return made.Remove()
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
type certificates struct{ server *envtest.Server }

// Configure implements Authn, and Start and Stop do.
func (certificates) Configure(string, *Arguments) error { return nil }

// Start implements Authn.
func (certificates) Start() error { return nil }

// Stop implements Authn.
func (certificates) Stop() error { return nil }

// AddUser implements Authn.
func (c certificates) AddUser(user User, base *rest.Config) (*rest.Config, error) {
	remote := c.server.Config(envtest.User(user.Name, user.Groups...), envtest.Remote())
	config := rest.CopyConfig(base)
	config.CertData, config.KeyData = remote.CertData, remote.KeyData
	return config, nil
}
