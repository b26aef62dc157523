package chain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/server/flagz"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	zpagesfeatures "k8s.io/component-base/zpages/features"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/capabilities"

	"snowglobe.test/envtest/chain/upstream"
	"snowglobe.test/envtest/process"
)

// defaults are the flags every chain starts from; the user's come after them and
// win. They fit a server in a process: RBAC as in a real cluster, no claim on the
// kubernetes service's endpoints, where a loopback address is not valid, and no
// admission of service accounts: it refuses every Pod until a controller has made the
// account "default" of its namespace.
var defaults = []string{
	"--authorization-mode=Node,RBAC",
	"--advertise-address=127.0.0.1",
	"--endpoint-reconciler-type=none",
	"--service-cluster-ip-range=10.0.0.0/24",
	"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
	"--allow-privileged=true",
	withoutServiceAccounts,
}

// withoutServiceAccounts is the one default that flags of the same name add to. It goes
// only if another flag asks for the plugin.
const withoutServiceAccounts = "--disable-admission-plugins=ServiceAccount"

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
}

// ParseFlags parses kube-apiserver flags as kube-apiserver does, with the
// chain's defaults below them. An error is upstream's own message.
func ParseFlags(flags []string) (*Flags, error) {
	gates := utilfeature.DefaultMutableFeatureGate.DeepCopy()
	registry := basecompatibility.NewComponentGlobalsRegistry()
	version := compatibility.DefaultKubeEffectiveVersionForTest()
	version.SetEmulationVersion(gates.EmulationVersion())
	version.SetMinCompatibilityVersion(gates.MinCompatibilityVersion())
	if err := registry.Register(basecompatibility.DefaultKubeComponent, version, gates); err != nil {
		return nil, fmt.Errorf("kube-apiserver flags: %w", err)
	}

	run := options.NewServerRunOptions()
	run.GenericServerRunOptions.ComponentGlobalsRegistry = registry
	sections := run.Flags()
	if gates.Enabled(zpagesfeatures.ComponentFlagz) {
		run.Flagz = flagz.NamedFlagSetsReader{FlagSets: sections}
	}
	set := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, section := range sections.FlagSets {
		set.AddFlagSet(section)
	}
	if err := set.Parse(slices.Concat(defaultsBelow(flags), flags)); err != nil {
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
	return &Flags{run: run, gates: gates}, nil
}

// defaultsBelow returns the defaults that the user's flags leave alone. The others must
// go: a flag that is a list would be added to its default, and upstream refuses modes beside a
// file that names them.
func defaultsBelow(flags []string) []string {
	return slices.DeleteFunc(slices.Clone(defaults), func(byDefault string) bool {
		if byDefault == withoutServiceAccounts {
			return asksForServiceAccounts(flags)
		}
		name, _, _ := strings.Cut(byDefault, "=")
		return given(flags, name) || name == "--authorization-mode" && given(flags, "--authorization-config")
	})
}

// given reports whether a flag is among flags, as "--name=value" or in two arguments.
func given(flags []string, name string) bool {
	return slices.ContainsFunc(flags, func(flag string) bool { return flag == name || strings.HasPrefix(flag, name+"=") })
}

// asksForServiceAccounts reports whether flags enable the ServiceAccount plugin, as
// "--enable-admission-plugins=A,ServiceAccount" or in two arguments.
func asksForServiceAccounts(flags []string) bool {
	for i, flag := range flags {
		name, plugins, inOne := strings.Cut(flag, "=")
		if !inOne && i+1 < len(flags) {
			plugins = flags[i+1]
		}
		if name == "--enable-admission-plugins" && slices.Contains(strings.Split(plugins, ","), "ServiceAccount") {
			return true
		}
	}
	return false
}

// Process returns what upstream keeps once in a process: of the feature gates
// those that differ from the process's at the moment.
func (f *Flags) Process() process.Flags {
	takeOver := []func() func(){takeOverCapabilities}
	if f.withoutHousekeeping {
		takeOver = append(takeOver, takeOverRenewal, upstream.WithoutQueueMetrics)
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
