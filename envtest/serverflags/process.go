package serverflags

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// Process is what the arguments of a kube-apiserver ask for, which runs in a process of its own.
type Process struct {
	// Help and Version ask for words instead of a server. Version is "true" or "raw" then.
	Help    bool
	Version string

	// What a harness has its own means for, and so is not among Flags.
	EtcdServers                           []string
	EtcdCAFile, EtcdCertFile, EtcdKeyFile string
	BindAddress                           string // an IP, "" unless it is given
	SecurePort                            int

	// Flags are all others, as WithFlags of the harness takes them. Upstream's own default is
	// among them wherever the harness has another, so that the server is the one that the
	// arguments ask for.
	Flags []string

	run *options.ServerRunOptions
	set *pflag.FlagSet
}

// ParseProcess parses arguments as kube-apiserver does. Its errors are upstream's words.
func ParseProcess(args []string) (*Process, error) {
	run, err := newRunOptions()
	if err != nil {
		return nil, err
	}
	p := &Process{run: run}
	p.set = p.flagSet()
	set := p.set
	err = set.ParseAll(args, func(flag *pflag.Flag, value string) error {
		if !slices.Contains(harness, flag.Name) {
			p.Flags = append(p.Flags, "--"+flag.Name+"="+value)
		}
		return set.Set(flag.Name, value)
	})
	if err != nil {
		return nil, err
	}
	if unexpected := slices.DeleteFunc(set.Args(), func(arg string) bool { return arg == "" }); len(unexpected) > 0 {
		return nil, fmt.Errorf("\"kube-apiserver\" does not take any arguments, got %q", unexpected)
	}
	p.take()
	p.Flags = slices.Concat(p.certificate(), p.Flags, p.upstreamDefaults())
	return p, nil
}

// Validate is upstream's validation of what is not among Flags.
func (p *Process) Validate() error {
	return utilerrors.NewAggregate(append(p.run.SecureServing.Validate(), p.Missing()))
}

// Missing is Validate, but any port will do.
func (p *Process) Missing() error {
	return utilerrors.NewAggregate(append(p.run.Etcd.Validate(), missingKeys(p.set)...))
}

// harness names the flags that are fields of Process.
var harness = []string{
	"help", "version", "etcd-servers", "etcd-cafile", "etcd-certfile", "etcd-keyfile", "bind-address", "secure-port", "cert-dir",
}

// newRunOptions returns options that leave the feature gates of this process alone.
func newRunOptions() (*options.ServerRunOptions, error) {
	run := options.NewServerRunOptions()
	registry := basecompatibility.NewComponentGlobalsRegistry()
	err := registry.Register(basecompatibility.DefaultKubeComponent, compatibility.DefaultKubeEffectiveVersionForTest(), utilfeature.DefaultMutableFeatureGate.DeepCopy())
	run.GenericServerRunOptions.ComponentGlobalsRegistry = registry
	return run, err
}

// flagSet has all flags that the program kube-apiserver has.
func (p *Process) flagSet() *pflag.FlagSet {
	set := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	set.Usage = func() {}
	set.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	for _, section := range p.run.Flags().FlagSets {
		set.AddFlagSet(section)
	}
	set.BoolVarP(&p.Help, "help", "h", false, "")
	set.Var((*version)(&p.Version), "version", "")
	set.Lookup("version").NoOptDefVal = "true"
	return set
}

func (p *Process) take() {
	transport := p.run.Etcd.StorageConfig.Transport
	p.EtcdServers = transport.ServerList
	p.EtcdCAFile, p.EtcdCertFile, p.EtcdKeyFile = transport.TrustedCAFile, transport.CertFile, transport.KeyFile
	p.SecurePort = p.run.SecureServing.BindPort
	if p.set.Changed("bind-address") {
		p.BindAddress = p.run.SecureServing.BindAddress.String()
	}
}

// certificate are the flags of the certificate in --cert-dir, if there is one. Upstream makes
// it if there is none, and a harness has its own.
func (p *Process) certificate() []string {
	serving := p.run.SecureServing.ServerCert
	base := filepath.Join(serving.CertDirectory, serving.PairName)
	if _, err := os.Stat(base + ".crt"); err != nil || serving.CertDirectory == "" {
		return nil
	}
	return []string{"--tls-cert-file=" + base + ".crt", "--tls-private-key-file=" + base + ".key"}
}

// upstreamDefaults are flags that are not given and whose default in a harness is another,
// with upstream's: see chain.Defaults.
func (p *Process) upstreamDefaults() (flags []string) {
	if !p.set.Changed("authorization-mode") && !p.set.Changed("authorization-config") {
		flags = append(flags, "--authorization-mode=AlwaysAllow")
	}
	for _, flag := range [][2]string{{"allow-privileged", "false"}, {"endpoint-reconciler-type", "lease"}} {
		if !p.set.Changed(flag[0]) {
			flags = append(flags, "--"+flag[0]+"="+flag[1])
		}
	}
	admission := p.run.Admission
	if admission.PluginNames == nil && !slices.Contains(admission.GenericAdmission.DisablePlugins, serviceAccount) {
		flags = append(flags, "--enable-admission-plugins="+serviceAccount)
	}
	return flags
}

// missingKeys says in upstream's words that a server has no means to issue tokens of service
// accounts. A harness has its own, so that its validation does not notice.
func missingKeys(set *pflag.FlagSet) (errs []error) {
	issuer, audiences := set.Changed("service-account-issuer"), set.Changed("api-audiences")
	key, endpoint := set.Changed("service-account-signing-key-file"), set.Changed("service-account-signing-endpoint")
	if !issuer {
		errs = append(errs, errors.New("service-account-issuer is a required flag"))
	}
	if !key && !endpoint && !set.Changed("service-account-key-file") {
		errs = append(errs, errors.New("either `--service-account-key-file` or `--service-account-signing-endpoint` must be set"))
	}
	switch {
	case issuer && (key || endpoint):
	case issuer || key || audiences:
		errs = append(errs, errors.New("--service-account-signing-key-file, --service-account-issuer, and --api-audiences should be specified together"))
	default:
		errs = append(errs, errors.New("--service-account-signing-key-file and --service-account-issuer are required flags"))
	}
	return errs
}

// version is the value of --version. Upstream also has it set the version that the server
// reports, which is of the linked release here.
type version string

// Set implements pflag.Value.
func (v *version) Set(text string) error {
	if text == "raw" {
		*v = "raw"
		return nil
	}
	wanted, err := strconv.ParseBool(text)
	if wanted {
		*v = "true"
	}
	return err
}

// String implements pflag.Value.
func (v *version) String() string { return cmp.Or(string(*v), "false") }

// Type implements pflag.Value.
func (v *version) Type() string { return "version" }
