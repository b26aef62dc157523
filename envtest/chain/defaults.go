package chain

import (
	"fmt"
	"net"

	genericfeatures "k8s.io/apiserver/pkg/features"
	clientfeatures "k8s.io/client-go/features"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/controlplane/reconcilers"
	"k8s.io/kubernetes/plugin/pkg/admission/serviceaccount"

	"snowglobe.test/envtest/process"
)

// Defaults are what a server does where no flag says otherwise. They are values of the flags, as
// if upstream had them: they count as not set, and a list that a user sets replaces its default.
type Defaults struct {
	// Index tells the server from others on its store.
	Index int
	// Replicas is how many there are: several are among the endpoints of the service kubernetes.
	Replicas int
	// WithoutHousekeeping leaves out what a server does by the clock though no client asks for it.
	WithoutHousekeeping bool
}

// set gives flags defaults that fit a server in a process: RBAC as in a real cluster, no claim on
// the endpoints of the service kubernetes, among which a loopback address is not valid, and no
// admission of service accounts: it refuses every Pod until a controller has made the account
// "default" of its namespace.
func (d Defaults) set(run *options.ServerRunOptions) {
	run.Authorization.Modes = []string{"Node", "RBAC"}
	run.EndpointReconcilerType = string(reconcilers.NoneEndpointReconcilerType)
	if d.Replicas > 1 {
		run.EndpointReconcilerType = string(reconcilers.LeaseEndpointReconcilerType)
	}
	run.ServiceClusterIPRanges = "10.0.0.0/24"
	run.Authentication.ServiceAccounts.Issuers = []string{"https://kubernetes.default.svc.cluster.local"}
	run.AllowPrivileged = true
	run.Admission.GenericAdmission.DefaultOffPlugins.Insert(serviceaccount.PluginName)
	if d.WithoutHousekeeping {
		setWithoutHousekeeping(run)
	}
}

// setGates sets the defaults of gates.
func (d Defaults) setGates(gates featuregate.MutableVersionedFeatureGate) error {
	if !d.WithoutHousekeeping {
		return nil
	}
	if err := gates.OverrideDefault(genericfeatures.UnknownVersionInteroperabilityProxy, false); err != nil {
		return fmt.Errorf("without housekeeping: %w", err)
	}
	return nil
}

// advertise sets the default of the address, which depends on what it is for: upstream wants no
// loopback address among endpoints. 192.0.2.0/24 is for documentation: no host has it.
func (d Defaults) advertise(run *options.ServerRunOptions) {
	run.GenericServerRunOptions.AdvertiseAddress = net.IPv4(127, 0, 0, 1)
	if run.EndpointReconcilerType != string(reconcilers.NoneEndpointReconcilerType) {
		run.GenericServerRunOptions.AdvertiseAddress = net.IPv4(192, 0, 2, byte(d.Index+1))
	}
}

// Upstream's features, which this package imports, have replaced client-go's gates, which ask the
// environment, by gates that do not. Clients of the process that are not the server's get them back.
func init() { clientfeatures.ReplaceFeatureGates(process.ClientGates(clientfeatures.FeatureGates())) }
