package envtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	upstream "sigs.k8s.io/controller-runtime/pkg/envtest"

	"snowglobe.test/envtest/client"
)

// Environment is controller-runtime's envtest.Environment on Snowglobe: the same fields,
// methods and environment variables, with an API server that is there in milliseconds if
// another test had it. What can't be honoured is an error of Start. Beyond it there are Options
// and Snowglobe.
type Environment struct {
	// ControlPlane is how to reach the API server, and where its flags are set:
	// ControlPlane.GetAPIServer().Configure().
	ControlPlane ControlPlane
	// Scheme decides which CRDs are converted by a webhook. The default is client-go's.
	Scheme *runtime.Scheme
	// Config is the configuration of a user of system:masters, set by Start. With
	// UseExistingCluster it may be set before.
	Config *rest.Config
	// KubeConfig is a kubeconfig of Config's user, set by Start.
	KubeConfig []byte

	// CRDInstallOptions and WebhookInstallOptions say what Start installs; it fills
	// in where manifests and managers have to look for each other.
	CRDInstallOptions     CRDInstallOptions
	WebhookInstallOptions WebhookInstallOptions
	// ErrorIfCRDPathMissing, CRDs and CRDDirectoryPaths are merged with
	// CRDInstallOptions.
	ErrorIfCRDPathMissing bool
	CRDs                  []*apiextensionsv1.CustomResourceDefinition
	CRDDirectoryPaths     []string

	// DownloadBinaryAssets needs no download: the program is built from modules. A
	// DownloadBinaryAssetsVersion must be its release, and the index is not read.
	DownloadBinaryAssets         bool
	DownloadBinaryAssetsVersion  string
	DownloadBinaryAssetsIndexURL string
	// BinaryAssetsDirectory, or KUBEBUILDER_ASSETS, may hold a kubectl for
	// AuthenticatedUser.Kubectl; else the one in PATH is run.
	BinaryAssetsDirectory string

	// UseExistingCluster, or USE_EXISTING_CLUSTER=true, starts no API server.
	UseExistingCluster *bool

	// ControlPlaneStartTimeout and ControlPlaneStopTimeout, or
	// KUBEBUILDER_CONTROLPLANE_START_TIMEOUT and KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT,
	// bound the start and the stop of the API server, but not the build of the program.
	ControlPlaneStartTimeout time.Duration
	ControlPlaneStopTimeout  time.Duration

	// AttachControlPlaneOutput, or KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT=true,
	// has Stop write the API server's log to stderr.
	AttachControlPlaneOutput bool

	// Options are Snowglobe's own, such as its WithFaults, and come last.
	Options []client.Option

	launched *client.ControlPlane
	asked    ListenAddr // before describe has said where the API server listens
	certDir  string     // made by describe, "" for none
}

// Snowglobe returns the control plane, with its faults, snapshots and trace; nil before Start
// and on an existing cluster.
func (te *Environment) Snowglobe() *client.ControlPlane { return te.launched }

// Start starts the API server, unless there is a cluster, and installs what the fields
// name. If it fails, Stop cleans up.
func (te *Environment) Start() (*rest.Config, error) {
	if !te.useExistingCluster() {
		if err := te.launch(); err != nil {
			return nil, fmt.Errorf("unable to start control plane itself: %w", err)
		}
	}
	existing := te.existing()
	config, err := existing.Start()
	te.takeOver(existing)
	return config, err
}

// Stop removes what Start has made; with CRDInstallOptions.CleanUpAfterUse, the CRDs too.
func (te *Environment) Stop() error {
	var uninstall error
	if te.launched != nil || te.Config != nil && te.useExistingCluster() {
		uninstall = te.existing().Stop()
	}
	return errors.Join(uninstall, te.land())
}

// AddUser returns a user, in groups, with a client certificate. The configuration is a
// copy of base, which may be nil.
func (te *Environment) AddUser(user User, base *rest.Config) (*AuthenticatedUser, error) {
	return te.ControlPlane.AddUser(user, base)
}

func (te *Environment) useExistingCluster() bool {
	if te.UseExistingCluster == nil {
		return strings.EqualFold(os.Getenv("USE_EXISTING_CLUSTER"), "true") // and no other word for yes
	}
	return *te.UseExistingCluster
}

// existing is controller-runtime's environment, to which the control plane is an existing
// cluster.
func (te *Environment) existing() *upstream.Environment {
	yes := true
	return &upstream.Environment{
		UseExistingCluster: &yes,
		Scheme:             te.Scheme, Config: te.Config, KubeConfig: te.KubeConfig,
		CRDInstallOptions: te.CRDInstallOptions, WebhookInstallOptions: te.WebhookInstallOptions,
		ErrorIfCRDPathMissing: te.ErrorIfCRDPathMissing, CRDs: te.CRDs, CRDDirectoryPaths: te.CRDDirectoryPaths,
	}
}

// takeOver copies what controller-runtime's Start has filled in.
func (te *Environment) takeOver(from *upstream.Environment) {
	te.Scheme, te.Config, te.KubeConfig = from.Scheme, from.Config, from.KubeConfig
	te.CRDInstallOptions, te.WebhookInstallOptions, te.CRDs = from.CRDInstallOptions, from.WebhookInstallOptions, from.CRDs
}

// launch starts the control plane and fills in ControlPlane and Config.
func (te *Environment) launch() error {
	if te.launched != nil {
		return errors.New("it has been started already; Stop it first")
	}
	opts, err := te.options()
	if err != nil {
		return err
	}
	if te.launched, err = client.Launch(context.Background(), opts...); err != nil {
		return err
	}
	if err := errors.Join(te.checkRelease(), te.describe()); err != nil {
		return errors.Join(err, te.land())
	}
	te.KubeConfig = nil
	admin, err := te.AddUser(User{Name: "admin", Groups: []string{"system:masters"}}, &rest.Config{QPS: 1000, Burst: 2000})
	if err != nil {
		return errors.Join(err, te.land())
	}
	te.Config = admin.Config()
	return nil
}

// land gives the control plane back, and removes the folder of its users.
func (te *Environment) land() error {
	if te.launched == nil {
		return nil
	}
	cp := te.launched
	te.launched = nil
	te.forget()
	return errors.Join(te.writeLog(cp), cp.Stop(context.Background()), te.removeCertDir())
}

// writeLog writes the log where it is wanted.
func (te *Environment) writeLog(cp *client.ControlPlane) error {
	to := te.output()
	if to == nil {
		return nil
	}
	log, err := cp.Log(context.Background())
	if err != nil {
		return err
	}
	_, err = io.WriteString(to, log)
	return err
}
