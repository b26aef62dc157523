package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/controllers"
	"snowglobe.test/envtest/linked"
	"snowglobe.test/envtest/nodes"
	"snowglobe.test/envtest/serverflags"
	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/storage/embedded"
	"snowglobe.test/envtest/storage/external"
	"snowglobe.test/envtest/storage/memory"
	"snowglobe.test/internal/light"
)

// upOptions are the flags of "up".
type upOptions struct {
	store      string
	secure     external.Config // the TLS files of a store at https
	dataDir    string
	crds       []string
	kubeconfig string
	pki        string
	port       int
	listen     string // empty for port
	nodes      int
	// controllers are names as in kube-controller-manager's flag --controllers; nil for none.
	controllers   []string
	startTimeout  time.Duration
	settledWrites bool
	verbose       bool
	flags         []string // for kube-apiserver
}

// The values of --store that are not URLs.
const (
	storeMemory   = "memory"
	storeEmbedded = "embedded"
)

func newUp() *cobra.Command {
	opts := upOptions{}
	cmd := &cobra.Command{
		Use:   "up [flags] [-- KUBE-APISERVER-FLAG...]",
		Short: "Run a control plane for kubectl until Ctrl-C",
		Long: `Run a control plane on loopback in the foreground, and write a cluster-admin
kubeconfig for it. Ctrl-C drains and stops it and removes the kubeconfig; a second
Ctrl-C ends it at once. Arguments after -- are passed to kube-apiserver as flags. The
ServiceAccount admission plugin is off unless they enable it: no controller creates the
service account that it requires for each Pod.

The keys used to make credentials are new each time, unless they are kept in a folder:
the one given by --pki, or "pki" inside that of --data-dir. Kubeconfigs and tokens then
survive a restart, and a kube-controller-manager can be given ca.crt, ca.key and sa.key.

--controllers runs kube-controller-manager's controllers alongside it. If one of them
makes service accounts, the ServiceAccount plugin is on unless flags disable it.
--nodes adds nodes that simulate their Pods, a kube-scheduler, and a default StorageClass
whose volumes are made out of nothing, so that a Deployment or a StatefulSet rolls out.`,
		Example: `  snowglobe up
  snowglobe up --port 6443 --crds ./config/crd
  snowglobe up --store embedded --data-dir ./data --port 6443
  snowglobe up --store unix://$PWD/etcd.sock
  snowglobe up --store https://127.0.0.1:2379 --etcd-cafile ca.crt --etcd-certfile client.crt --etcd-keyfile client.key
  snowglobe up --controllers --nodes 3
  snowglobe up --controllers=namespace,garbage-collector-controller
  snowglobe up --controllers=*,-resourcequota
  snowglobe up -v -- --event-ttl=10m --v=4`,
		DisableFlagsInUseLine: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if dash := cmd.ArgsLenAtDash(); dash > 0 || dash < 0 && len(args) > 0 {
				return fmt.Errorf("unexpected argument %q; flags of the API server come after --", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if light.Build && (opts.controllers != nil || opts.nodes > 0) {
				return runWhole(cmd)
			}
			opts.flags = args
			if cmd.Flags().Changed("start-timeout") {
				// A third is for the dial; if there is no answer, another is for finding out why.
				opts.secure.DialTimeout = opts.startTimeout / 3
			}
			store, err := opts.newStore()
			if err != nil {
				return err
			}
			return failed(up(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), store, opts))
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && serverflags.Has(unknown.GetSpecifiedName()) {
			return fmt.Errorf("--%[1]s is a flag of kube-apiserver, and those come after --, as in: snowglobe up -- --%[1]s=...", unknown.GetSpecifiedName())
		}
		return err
	})
	flags := cmd.Flags()
	flags.StringVar(&opts.store, "store", storeMemory, "memory, embedded (an etcd in this process, which takes 128 MB in the temporary folder or --data-dir), or the `URL`s of an etcd, separated by commas")
	flags.StringVar(&opts.secure.CAFile, "etcd-cafile", "", "trust the authority in this `file` for a --store at https")
	flags.StringVar(&opts.secure.CertFile, "etcd-certfile", "", "show a --store at https the client certificate in this `file`")
	flags.StringVar(&opts.secure.KeyFile, "etcd-keyfile", "", "the `file` of that certificate's key")
	flags.StringVar(&opts.dataDir, "data-dir", "", "keep the data of the embedded store in this `folder`; what is written comes on top of the 128 MB")
	flags.StringArrayVar(&opts.crds, "crds", nil, "install the CustomResourceDefinitions of this `file or folder`; may be repeated")
	flags.StringVar(&opts.pki, "pki", "", "keep the certificate authority and the key of service account tokens in this `folder`, under kubeadm's names")
	flags.StringVar(&opts.kubeconfig, "kubeconfig", "snowglobe.kubeconfig", "write the kubeconfig to this `file`")
	flags.IntVar(&opts.port, "port", 0, "port on 127.0.0.1, or on ::1 where there is no other; 0 picks a free one")
	flags.StringVar(&opts.listen, "listen", "",
		"listen at this `address` of loopback, such as [::1]:6443, instead of --port")
	cmd.MarkFlagsMutuallyExclusive("port", "listen")
	flags.BoolVar(&opts.settledWrites, "settled-writes", true, "answer a write when the server's own watch caches "+
		"and informers have it; false keeps the races of a client that is faster")
	flags.StringSliceVar(&opts.controllers, "controllers", nil, "run these `controllers` of kube-controller-manager; without names, or with *, those that need only an API server and nodes; -NAME is without one")
	flags.Lookup("controllers").NoOptDefVal = withDefault
	flags.IntVar(&opts.nodes, "nodes", 0, "simulate this many nodes, and run kube-scheduler")
	flags.DurationVar(&opts.startTimeout, "start-timeout", time.Minute, "give up if the API server is not ready after this time")
	flags.BoolVarP(&opts.verbose, "verbose", "v", false, "show the API server's log")
	return cmd
}

// withDefault is --controllers without names.
const withDefault = "default"

// newStore makes the store given by the flags. It does not start it.
func (o upOptions) newStore() (storage.Backend, error) {
	if o.port < 0 || o.port > 65535 {
		return nil, fmt.Errorf("--port %d is not a port; give a number from 0 to 65535", o.port)
	}
	if o.startTimeout <= 0 {
		return nil, fmt.Errorf("--start-timeout %s is no time to wait; give one like 2m", o.startTimeout)
	}
	if o.nodes < 0 {
		return nil, fmt.Errorf("--nodes %d is not a number of nodes", o.nodes)
	}
	if err := controllers.Check(o.controllers...); err != nil {
		return nil, fmt.Errorf("--controllers: %w", err)
	}
	if o.dataDir != "" && o.store != storeEmbedded {
		return nil, fmt.Errorf("--data-dir is for --store %s; store %q has no data folder", storeEmbedded, o.store)
	}
	remote := strings.Contains(o.store, "://")
	if !remote && o.secure.CAFile+o.secure.CertFile+o.secure.KeyFile != "" {
		return nil, fmt.Errorf("--etcd-cafile, --etcd-certfile and --etcd-keyfile are for a --store at https; store %q has no TLS", o.store)
	}
	switch {
	case o.store == storeMemory:
		return memory.New("up"), nil
	case o.store == storeEmbedded:
		return embedded.New(embedded.Config{DataDir: o.dataDir, StartTimeout: o.startTimeout}), nil
	case remote:
		etcd := o.secure
		etcd.URLs = strings.Split(o.store, ",")
		return external.New(etcd)
	}
	return nil, fmt.Errorf("--store %q is not known; use %s, %s, or a URL like http://127.0.0.1:2379", o.store, storeMemory, storeEmbedded)
}

// makesServiceAccounts reports whether a controller creates what the admission plugin
// ServiceAccount requires.
func (o upOptions) makesServiceAccounts() bool {
	return o.controllers != nil && controllers.MakeServiceAccounts(o.controllers...)
}

// pkiFolder is where keys are kept, empty for nowhere.
func (o upOptions) pkiFolder() string {
	if o.pki == "" && o.dataDir != "" {
		return filepath.Join(o.dataDir, "pki")
	}
	return o.pki
}

// up runs a control plane until the context ends or the API server crashes.
func up(ctx context.Context, stdout, stderr io.Writer, store storage.Backend, opts upOptions) error {
	kubeconfig, err := filepath.Abs(opts.kubeconfig)
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	if err := clearKubeconfig(ctx, kubeconfig); err != nil {
		return err
	}
	apiServerFlags := opts.flags
	if opts.makesServiceAccounts() {
		apiServerFlags = serverflags.WithServiceAccounts(apiServerFlags)
	}
	progress := newProgress(stderr)
	options := []envtest.Option{
		envtest.WithStore(store), envtest.WithFlags(apiServerFlags...), envtest.WithCRDPaths(opts.crds...),
		envtest.WithListener(cmp.Or(opts.listen, net.JoinHostPort("localhost", strconv.Itoa(opts.port)))),
		envtest.WithSettledWrites(opts.settledWrites),
		envtest.WithKubeconfig(kubeconfig), envtest.WithObserver(progress.observe), envtest.WithPKI(opts.pkiFolder()), envtest.WithTimeouts(opts.startTimeout, 0),
	}
	if opts.verbose {
		options = append(options, envtest.WithLog(stderr))
	}
	if opts.nodes > 0 {
		options = append(options, envtest.WithDialer(nodes.Dial))
	}
	began := time.Now()
	cp, err := envtest.Launch(ctx, options...)
	progress.end()
	if err != nil {
		return err
	}
	rest, err := notInstalled(opts.crds)
	if err != nil {
		return errors.Join(err, cp.Stop(context.WithoutCancel(ctx)))
	}
	fmt.Fprint(stderr, rest)
	programs, err := startPrograms(ctx, cp, opts)
	if err != nil {
		return errors.Join(err, cp.Stop(context.WithoutCancel(ctx)))
	}
	if err := greet(stdout, cp, kubeconfig, time.Since(began), opts); err != nil {
		stopping := context.WithoutCancel(ctx)
		return errors.Join(err, programs.stop(stopping), cp.Stop(stopping))
	}
	select {
	case <-ctx.Done():
		// The kubeconfig goes now and not at the end, so that a second Ctrl-C does not leave it behind.
		if err := os.Remove(kubeconfig); err != nil && !errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(stderr, "snowglobe: %v\n", err)
		}
		fmt.Fprintln(stderr, "snowglobe: draining and stopping; Ctrl-C again ends it at once")
	case <-cp.Crashed():
	}
	began = time.Now()
	stopping := ctx
	if ctx.Err() != nil { // after a crash, Ctrl-C is still to come
		stopping = context.WithoutCancel(ctx)
	}
	err = errors.Join(programs.stop(stopping), cp.Stop(stopping))
	if crash := cp.Err(); crash != nil {
		if ctx.Err() != nil {
			err = nil // the end was cut short; what counts is the crash
		}
		return verdict(&stopError{errors.Join(fmt.Errorf("the API server crashed: %w", crash), err)})
	}
	if err != nil {
		return verdict(&stopError{err})
	}
	fmt.Fprintf(stderr, "snowglobe: stopped in %s\n", round(time.Since(began)))
	return nil
}

func greet(stdout io.Writer, cp *envtest.ControlPlane, kubeconfig string, took time.Duration, opts upOptions) error {
	accounts := `No controller makes service accounts, so the admission plugin ServiceAccount is off
unless flags enable it; "--controllers" runs one that does.`
	switch {
	case opts.makesServiceAccounts():
		accounts = `Controllers of kube-controller-manager run, and the admission plugin ServiceAccount is on
unless flags disable it.`
	case opts.controllers != nil:
		accounts = `Controllers of kube-controller-manager run, but none that makes service accounts, so the
admission plugin ServiceAccount is off unless flags enable it.`
	}
	_, err := fmt.Fprintf(stdout, `Kubernetes %s is up at %s, on store %s, after %s.

    export KUBECONFIG=%s
    kubectl get namespaces
    kubectl create configmap snow --from-literal=falls=softly
    kubectl get --raw /readyz?verbose

%s
Ctrl-C stops the control plane and removes the kubeconfig.
`, linked.Release(), cp.Config(envtest.Remote()).Host, cp.Store(), round(took), kubeconfig, accounts)
	return err
}

// dialTimeout bounds a dial to the server of an old kubeconfig, which is on loopback.
const dialTimeout = time.Second

// clearKubeconfig removes a kubeconfig that a killed control plane has left at path. It
// returns an error if anything else is there, or if the folder does not exist.
func clearKubeconfig(ctx context.Context, path string) error {
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return fmt.Errorf("kubeconfig: %s already exists and was not written by snowglobe (%w); name another file with --kubeconfig", path, err)
	}
	cluster := config.Clusters["snowglobe"]
	if cluster == nil || len(config.Clusters) != 1 || config.CurrentContext != "snowglobe" {
		return fmt.Errorf("kubeconfig: %s already exists and was not written by snowglobe; name another file with --kubeconfig", path)
	}
	server, err := url.Parse(cluster.Server)
	if err != nil {
		return fmt.Errorf("kubeconfig: %s: %w", path, err)
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	if conn, err := dialer.DialContext(ctx, "tcp", server.Host); err == nil {
		_ = conn.Close()
		return fmt.Errorf("kubeconfig: %s belongs to a control plane that is up at %s; stop that one, or name another file with --kubeconfig", path, cluster.Server)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("kubeconfig: remove the leftover of a control plane that is gone: %w", err)
	}
	return nil
}
