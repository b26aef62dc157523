package chain

import (
	"crypto/x509"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/server/flagz"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	certutil "k8s.io/client-go/util/cert"
	cliflag "k8s.io/component-base/cli/flag"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	zpagesfeatures "k8s.io/component-base/zpages/features"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/capabilities"

	"snowglobe.test/envtest/process"
)

// owned are flags for what the chain itself brings, with what to do instead.
var owned = map[string]string{
	"etcd-servers":  otherStore,
	"etcd-certfile": otherStore,
	"etcd-keyfile":  otherStore,
	"etcd-cafile":   otherStore,
	"secure-port":   "ask for a TLS listener instead: --port on the command line, or envtest.WithListener",
	"bind-address":  "ask for a TLS listener instead: --port on the command line, or envtest.WithListener",
}

const otherStore = "choose the store instead: --store on the command line, or envtest.WithStore"

// Flags are parsed kube-apiserver flags, for one chain: completion changes them.
type Flags struct {
	run   *options.ServerRunOptions
	gates featuregate.MutableVersionedFeatureGate
	// withoutHousekeeping makes rare what no flag leaves out.
	withoutHousekeeping bool
	// frontProxy is whether they say what the front proxy is.
	frontProxy bool
	// remarks are lines that parsing has for the user, such as that a flag is deprecated.
	remarks string
}

// ParseFlags parses kube-apiserver flags as kube-apiserver does. An error is upstream's own
// message.
func ParseFlags(flags []string, defaults Defaults) (*Flags, error) {
	gates := utilfeature.DefaultMutableFeatureGate.DeepCopy()
	if err := defaults.setGates(gates); err != nil {
		return nil, err
	}
	registry := basecompatibility.NewComponentGlobalsRegistry()
	version := compatibility.DefaultKubeEffectiveVersionForTest()
	version.SetEmulationVersion(gates.EmulationVersion())
	version.SetMinCompatibilityVersion(gates.MinCompatibilityVersion())
	if err := registry.Register(basecompatibility.DefaultKubeComponent, version, gates); err != nil {
		return nil, fmt.Errorf("kube-apiserver flags: %w", err)
	}

	run := options.NewServerRunOptions()
	run.GenericServerRunOptions.ComponentGlobalsRegistry = registry
	defaults.set(run)
	sections := run.Flags()
	if gates.Enabled(zpagesfeatures.ComponentFlagz) {
		run.Flagz = flagz.NamedFlagSetsReader{FlagSets: sections}
	}
	set := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	set.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	for _, section := range sections.FlagSets {
		set.AddFlagSet(section)
	}
	var remarks strings.Builder
	set.SetOutput(&remarks)
	if err := set.Parse(flags); err != nil {
		return nil, fmt.Errorf("kube-apiserver flags: %w", err)
	}
	if set.NArg() > 0 {
		return nil, fmt.Errorf("kube-apiserver flags: %q is not a flag; write --name=value", set.Arg(0))
	}
	for name, instead := range owned {
		if set.Changed(name) {
			return nil, fmt.Errorf("kube-apiserver flags: --%s belongs to the harness; %s", name, instead)
		}
	}
	if err := registry.Set(); err != nil {
		return nil, fmt.Errorf("kube-apiserver flags: %w", err)
	}
	switch given := set.Changed("advertise-address"); {
	case !given:
		defaults.advertise(run)
	case defaults.Replicas > 1:
		return nil, fmt.Errorf("kube-apiserver flags: %d replicas cannot share --advertise-address; leave it out", defaults.Replicas)
	}
	return &Flags{
		run: run, gates: gates, withoutHousekeeping: defaults.WithoutHousekeeping,
		frontProxy: slices.ContainsFunc(frontProxyFlags, set.Changed), remarks: remarks.String(),
	}, nil
}

// LogRemarks logs what kube-apiserver says of its flags on stderr, such as that one is deprecated.
func (f *Flags) LogRemarks() {
	for line := range strings.Lines(f.remarks) {
		klog.Warning(strings.TrimSpace(line))
	}
}

// ServingCertificate returns the certificates in --tls-cert-file, the server's own first. There are
// none without that flag, and if the file can't be read: upstream says so.
func (f *Flags) ServingCertificate() []*x509.Certificate {
	file := f.run.SecureServing.ServerCert.CertKey.CertFile
	if file == "" {
		return nil
	}
	certificates, err := certutil.CertsFromFile(file)
	if err != nil {
		return nil
	}
	return certificates
}

// Process returns what upstream keeps once in a process: of the feature gates
// those that differ from the process's at the moment.
func (f *Flags) Process() process.Flags {
	takeOver := []func() func(){takeOverCapabilities}
	if f.withoutHousekeeping {
		takeOver = append(takeOver, takeOverRenewal, process.WithoutQueueMetrics)
	}
	return process.Flags{
		Gates:               differingGates(f.gates),
		AllowPrivileged:     f.run.AllowPrivileged,
		BytesPerSecond:      f.run.MaxConnectionBytesPerSec,
		Verbosity:           int(f.run.Logs.Verbosity),
		ContentionProfiling: f.run.Features.EnableContentionProfiling,
		WithoutHousekeeping: f.withoutHousekeeping,
		TakeOver:            takeOver,
	}
}

// takeOverCapabilities lets the next server set what upstream sets once a process.
func takeOverCapabilities() (giveBack func()) {
	before := capabilities.Get()
	capabilities.ResetForTest()
	return func() {
		capabilities.ResetForTest()
		capabilities.Initialize(before)
	}
}

func differingGates(gates featuregate.MutableVersionedFeatureGate) map[featuregate.Feature]bool {
	differing := map[featuregate.Feature]bool{}
	for name := range utilfeature.DefaultMutableFeatureGate.GetAll() {
		if want := gates.Enabled(name); want != utilfeature.DefaultFeatureGate.Enabled(name) {
			differing[name] = want
		}
	}
	return differing
}
