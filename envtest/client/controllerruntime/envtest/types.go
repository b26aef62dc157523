package envtest

import "sigs.k8s.io/controller-runtime/pkg/envtest"

// What controller-runtime's envtest has besides Environment is here under its name.
type (
	// ControlPlane is Environment.ControlPlane.
	ControlPlane = envtest.ControlPlane
	// APIServer is Environment.ControlPlane.APIServer.
	APIServer = envtest.APIServer
	// Etcd is Environment.ControlPlane.Etcd.
	Etcd = envtest.Etcd
	// User is a user to add.
	User = envtest.User
	// AuthenticatedUser is a user that was added.
	AuthenticatedUser = envtest.AuthenticatedUser
	// ListenAddr is an address and a port.
	ListenAddr = envtest.ListenAddr
	// SecureServing is how the API server serves TLS.
	SecureServing = envtest.SecureServing
	// Authn adds users.
	Authn = envtest.Authn
	// Arguments are flags.
	Arguments = envtest.Arguments
	// Arg is a flag's value or values.
	Arg = envtest.Arg
	// CRDInstallOptions are for InstallCRDs.
	CRDInstallOptions = envtest.CRDInstallOptions
	// WebhookInstallOptions are for Environment.
	WebhookInstallOptions = envtest.WebhookInstallOptions
)

// StartTimeout and StopTimeout are seconds.
const (
	StartTimeout = envtest.StartTimeout
	StopTimeout  = envtest.StopTimeout
)

// Functions of controller-runtime's envtest.
var (
	EmptyArguments                           = envtest.EmptyArguments
	InstallCRDs                              = envtest.InstallCRDs
	UninstallCRDs                            = envtest.UninstallCRDs
	CreateCRDs                               = envtest.CreateCRDs
	ReadCRDFiles                             = envtest.ReadCRDFiles
	WaitForCRDs                              = envtest.WaitForCRDs
	WaitForWebhooks                          = envtest.WaitForWebhooks
	SetupEnvtestDefaultBinaryAssetsDirectory = envtest.SetupEnvtestDefaultBinaryAssetsDirectory
	// DefaultKubeAPIServerFlags are deprecated there too.
	//lint:ignore SA1019 there are suites that name it
	DefaultKubeAPIServerFlags = envtest.DefaultKubeAPIServerFlags
)
