package chain

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/flagz"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/cache"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	zpagesfeatures "k8s.io/component-base/zpages/features"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/capabilities"
	"k8s.io/kubernetes/pkg/serviceaccount"

	"snowglobe.test/envtest/chain/inject"
	"snowglobe.test/envtest/process"
)

// defaults are the flags every chain starts from; Config.Flags come after them
// and win. They are what a server needs that lives in a process: RBAC as in a
// real cluster, no claim on the kubernetes service's endpoints (a loopback
// address is not valid there), no wait for events that only a load balancer
// needs.
var defaults = []string{
	"--authorization-mode=Node,RBAC",
	"--advertise-address=127.0.0.1",
	"--endpoint-reconciler-type=none",
	"--service-cluster-ip-range=10.0.0.0/24",
	"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
	"--allow-privileged=true",
}

// owned are flags for what the chain itself brings, with what to do instead.
var owned = map[string]string{
	"etcd-servers":   "give the control plane a store instead",
	"etcd-certfile":  "give the control plane a store instead",
	"etcd-keyfile":   "give the control plane a store instead",
	"etcd-cafile":    "give the control plane a store instead",
	"secure-port":    "ask for a TLS listener instead",
	"bind-address":   "ask for a TLS listener instead",
	"client-ca-file": "add users to the control plane instead",
}

// completedOptions is upstream's type with what the other stages need beside.
type completedOptions struct {
	options.CompletedOptions
}

// ParsedFlags are kube-apiserver flags that upstream has parsed and validated.
type ParsedFlags struct {
	run   *options.ServerRunOptions
	gates featuregate.MutableVersionedFeatureGate
}

// ParseFlags parses kube-apiserver flags as kube-apiserver does, with the
// chain's defaults below them. An error is upstream's own message.
func ParseFlags(flags []string) (*ParsedFlags, error) {
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
	if err := set.Parse(slices.Concat(defaults, flags)); err != nil {
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
	return &ParsedFlags{run: run, gates: gates}, nil
}

// Process returns what upstream keeps once in a process: of the feature gates
// those that differ from the process's at the moment.
func (f *ParsedFlags) Process() process.Flags {
	return process.Flags{
		Gates:               differingGates(f.gates),
		AllowPrivileged:     f.run.AllowPrivileged,
		BytesPerSecond:      f.run.MaxConnectionBytesPerSec,
		Verbosity:           int(f.run.Logs.Verbosity),
		ContentionProfiling: f.run.Features.EnableContentionProfiling,
		TakeOver:            []func() func(){takeOverCapabilities},
	}
}

// takeOverCapabilities lets the next server set its capabilities, which upstream
// does once in a process.
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

// completeOptions is the first stage: flags become completed, valid options.
func (c *Chain) completeOptions(ctx context.Context) error {
	run := c.cfg.Flags.run
	if err := c.setServing(run); err != nil {
		return err
	}
	if err := setServiceAccountKeys(run, c.cfg.AccountKey); err != nil {
		return err
	}
	var err error
	if run.InformerName, err = cache.NewInformerName("kube-apiserver-" + c.cfg.Name); err != nil {
		return err
	}
	c.informerName = run.InformerName
	decorators := &run.Admission.GenericAdmission.Decorators
	*decorators = append(admission.Decorators{inject.Webhooks(c.edge), admission.DecoratorFunc(c.quota.decorate)}, *decorators...)
	c.setStore(run)

	completed, err := c.complete(ctx, run)
	if err != nil {
		return err
	}
	c.options = &completedOptions{completed}
	return nil
}

// complete is upstream's completion and validation. A certificate file that is
// named meanwhile keeps it from making an RSA key and writing it to the disk.
func (c *Chain) complete(ctx context.Context, run *options.ServerRunOptions) (options.CompletedOptions, error) {
	serving := &run.SecureServing.ServerCert
	own := serving.CertKey.CertFile == ""
	if own {
		serving.CertKey.CertFile, serving.CertKey.KeyFile = "content", "content"
	}
	completed, err := run.Complete(ctx)
	if err != nil {
		return options.CompletedOptions{}, err
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return options.CompletedOptions{}, utilerrors.NewAggregate(errs)
	}
	if own {
		serving.CertKey.CertFile, serving.CertKey.KeyFile = "", ""
		serving.GeneratedCert, err = dynamiccertificates.NewStaticCertKeyContent("serving-cert", c.cfg.Serving.Cert, c.cfg.Serving.Key)
		if err != nil {
			return options.CompletedOptions{}, fmt.Errorf("serving certificate: %w", err)
		}
	}
	return completed, nil
}

// setServing hands the listener and the certificates over as content: a file
// would be watched through the operating system, which virtual time can't see.
func (c *Chain) setServing(run *options.ServerRunOptions) error {
	addr := c.cfg.Endpoint.Addr()
	run.SecureServing.Listener = c.cfg.Endpoint.Listener()
	run.SecureServing.BindPort, run.SecureServing.BindAddress = addr.Port, addr.IP
	ca, err := dynamiccertificates.NewStaticCAContent("client-ca", c.cfg.ClientCA)
	if err != nil {
		return fmt.Errorf("client CA: %w", err)
	}
	run.Authentication.ClientCert.CAContentProvider = ca
	return nil
}

// setServiceAccountKeys gives the token issuer its key unless flags name key
// files.
func setServiceAccountKeys(run *options.ServerRunOptions, key *ecdsa.PrivateKey) error {
	accounts := run.Authentication.ServiceAccounts
	if run.ServiceAccountSigningKeyFile != "" || run.ServiceAccountSigningEndpoint != "" || len(accounts.KeyFiles) > 0 {
		return nil
	}
	if len(accounts.Issuers) == 0 || accounts.Issuers[0] == "" {
		return errors.New("--service-account-issuer must not be empty")
	}
	var err error
	if run.ServiceAccountIssuer, err = serviceaccount.JWTTokenGenerator(accounts.Issuers[0], key); err != nil {
		return fmt.Errorf("service account token issuer: %w", err)
	}
	if accounts.ExternalPublicKeysGetter, err = serviceaccount.StaticPublicKeysGetter([]any{key.Public()}); err != nil {
		return fmt.Errorf("service account public key: %w", err)
	}
	return nil
}

// setStore points upstream's own etcd clients, of the few callers that insist
// on one, at the store.
func (c *Chain) setStore(run *options.ServerRunOptions) {
	endpoints := c.cfg.Store.Endpoints()
	transport := &run.Etcd.StorageConfig.Transport
	transport.ServerList = endpoints.URLs
	transport.CertFile, transport.KeyFile, transport.TrustedCAFile = endpoints.CertFile, endpoints.KeyFile, endpoints.CAFile
}

// FlagNames returns the names of all kube-apiserver flags, sorted.
func FlagNames() []string {
	var names []string
	for _, section := range options.NewServerRunOptions().Flags().FlagSets {
		section.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	}
	slices.SortFunc(names, strings.Compare)
	return names
}
