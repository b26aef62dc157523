package etcdmain

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/api/v3/version"
	"go.etcd.io/etcd/client/pkg/v3/tlsutil"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	etcdflags "go.etcd.io/etcd/pkg/v3/flags"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// ignoredFlags are the original's own leftovers, which it ignores.
var ignoredFlags = []string{
	"cluster-active-size", "cluster-remove-delay", "cluster-sync-interval", "config", "force", "max-result-buffer", "max-retry-attempts",
	"peer-heartbeat-interval", "peer-election-timeout", "retry-interval", "snapshot", "v", "vv", "test.coverprofile", "test.outputdir",
}

// refusedFlags are those whose effect a user would miss. Their defaults may be given.
var refusedFlags = []string{
	"config-file", "initial-cluster-state", "discovery-token", "discovery-endpoints", "discovery-srv", "auth-token",
	"cors", "host-whitelist", "enable-distributed-tracing",
}

// flagSet are an etcd's flags.
type flagSet struct {
	*flag.FlagSet
	stdout  io.Writer
	config  *embed.Config
	version *bool
}

func newFlags(stdout io.Writer) *flagSet {
	f := &flagSet{FlagSet: flag.NewFlagSet("etcd", flag.ContinueOnError), stdout: stdout, config: embed.NewConfig()}
	f.config.AddFlags(f.FlagSet)
	f.String("config-file", "", "Not supported in memory.")
	f.String("initial-cluster-state", embed.ClusterStateFlagNew, "Only new, in memory.")
	f.String("discovery-fallback", "exit", "Without effect.")
	f.String("v2-deprecation", "", "Without effect.")
	for _, name := range ignoredFlags {
		f.Var(&etcdflags.IgnoredFlag{Name: name}, name, "Without effect.")
	}
	f.version = f.Bool("version", false, "Print the version and exit.")
	f.SetOutput(stdout)
	f.Usage = func() {
		fmt.Fprint(stdout, "This is Snowglobe's in-memory etcd: flags about disks and peers have no effect.\n\nUsage:\n")
		all := pflag.NewFlagSet("etcd", pflag.ContinueOnError)
		all.AddGoFlagSet(f.FlagSet)
		// Go's own PrintDefaults also prints a panic, because it asks for a feature gate that is zero.
		fmt.Fprint(stdout, all.FlagUsagesWrapped(100))
	}
	return f
}

// FlagError is about flags that can't be parsed.
type FlagError struct{ error }

// parse parses flags and, where there is no flag, variables of the environment, and checks them as
// the original does. There is no configuration if something else was asked for, and done.
func (f *flagSet) parse(args []string) (*embed.Config, error) {
	switch err := f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil, nil
	case err != nil:
		return nil, &FlagError{err}
	case f.NArg() > 0:
		return nil, fmt.Errorf("%q is not a valid flag", f.Arg(0))
	case *f.version:
		_, err := fmt.Fprintf(f.stdout, "etcd Version: %s\nGit SHA: %s\nGo Version: %s\nGo OS/Arch: %s/%s\n",
			version.Version, version.GitSHA, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return nil, err
	}
	if err := f.readEnvironment(); err != nil {
		return nil, err
	}
	if err := f.refuse(); err != nil {
		return nil, err
	}
	f.take()
	return f.config, f.config.Validate()
}

// readEnvironment sets flags that are not given from variables. The original refuses a variable
// beside its flag.
func (f *flagSet) readEnvironment() (err error) {
	variable := func(name string) string { return etcdflags.FlagToEnv("ETCD", name) }
	if err := os.Unsetenv(variable("version")); err != nil { // as the original: images set it to their release
		return err
	}
	f.Visit(func(given *flag.Flag) {
		if _, shadowed := os.LookupEnv(variable(given.Name)); shadowed {
			err = fmt.Errorf("conflicting environment variable %s is shadowed by corresponding command-line flag: unset it, or leave --%s out", variable(given.Name), given.Name)
		}
	})
	if err != nil {
		return err
	}
	return etcdflags.SetFlagsFromEnv(nil, "ETCD", f.FlagSet)
}

// refuse returns an error for what an etcd in memory can't do.
func (f *flagSet) refuse() error {
	for _, name := range refusedFlags {
		if given := f.Lookup(name); given.Value.String() != given.DefValue {
			return fmt.Errorf("an etcd in memory can't honour --%s; remove it, or run a real etcd", name)
		}
	}
	return nil
}

// take puts into the configuration what flags do not put there themselves.
func (f *flagSet) take() {
	c := f.config
	c.ListenPeerUrls = etcdflags.UniqueURLsFromFlag(f.FlagSet, "listen-peer-urls")
	c.AdvertisePeerUrls = etcdflags.UniqueURLsFromFlag(f.FlagSet, "initial-advertise-peer-urls")
	c.ListenClientUrls = etcdflags.UniqueURLsFromFlag(f.FlagSet, "listen-client-urls")
	c.ListenClientHttpUrls = etcdflags.UniqueURLsFromFlag(f.FlagSet, "listen-client-http-urls")
	c.ListenMetricsUrls = etcdflags.UniqueURLsFromFlag(f.FlagSet, "listen-metrics-urls")
	c.AdvertiseClientUrls = etcdflags.UniqueURLsFromFlag(f.FlagSet, "advertise-client-urls")
	if etcdflags.IsSet(f.FlagSet, "listen-client-urls") && !etcdflags.IsSet(f.FlagSet, "advertise-client-urls") {
		c.AdvertiseClientUrls = nil // so that the original refuses them
	}
	c.ClientTLSInfo.AllowedHostnames = etcdflags.StringsFromFlag(f.FlagSet, "client-cert-allowed-hostname")
	c.CipherSuites = etcdflags.StringsFromFlag(f.FlagSet, "cipher-suites")
	c.MaxConcurrentStreams = etcdflags.Uint32FromFlag(f.FlagSet, "max-concurrent-streams")
	c.LogOutputs = etcdflags.UniqueStringsFromFlag(f.FlagSet, "log-outputs")
}

// clientTLS is the TLS of client URLs, empty if none wants it.
func clientTLS(config *embed.Config) (info transport.TLSInfo, err error) {
	if !securely(config) {
		return info, nil
	}
	info = config.ClientTLSInfo
	asks := info.TrustedCAFile != "" || info.ClientCertAuth
	switch {
	case info.Empty() && !config.ClientAutoTLS:
		return info, nil // who listens says so, with the URL
	case info.Empty() && asks:
		return info, errors.New("--auto-tls makes a certificate for the server alone; give --cert-file and --key-file to ask clients for theirs")
	case info.Empty():
		var hosts []string
		for _, at := range config.ListenClientUrls {
			hosts = append(hosts, at.Host)
		}
		folder := filepath.Join(cmp.Or(config.Dir, config.Name+".etcd"), "fixtures", "client")
		if info, err = transport.SelfCert(zap.NewNop(), folder, hosts, config.SelfSignedCertValidity); err != nil {
			return info, fmt.Errorf("--auto-tls: %w", err)
		}
	}
	info.AllowedHostnames = config.ClientTLSInfo.AllowedHostnames
	var errs [3]error
	info.MinVersion, errs[0] = tlsutil.GetTLSVersion(config.TlsMinVersion)
	info.MaxVersion, errs[1] = tlsutil.GetTLSVersion(config.TlsMaxVersion)
	info.CipherSuites, errs[2] = tlsutil.GetCipherSuites(config.CipherSuites)
	return info, errors.Join(append(errs[:], CheckTLS(info))...)
}
