// Package arguments has the arguments with which controller-runtime's envtest starts
// kube-apiserver, for a server that needs no process.
package arguments

//lint:file-ignore SA1019 deprecated fields are honoured

import (
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Names, in the API server's CertDir, of the key pair that signs tokens of service accounts.
const (
	AccountCertFile = "sa-signer.crt"
	AccountKeyFile  = "sa-signer.key"
)

// Issuer is the issuer of tokens if no flag says otherwise. Controller-runtime names the address
// of the server, which is not known here before it listens.
const Issuer = "https://kubernetes.default.svc.cluster.local"

// Of returns the arguments of a kube-apiserver on an etcd: those of Configure on envtest's
// defaults, and those of the deprecated Args that are not among envtest's own. The fields of
// the server that defaults are made of must be filled in.
func Of(server *envtest.APIServer, etcd string) []string {
	defaults := defaults(server, etcd)
	var more []string
	for _, arg := range server.Args {
		if arg == "" || slices.Contains(envtest.DefaultKubeAPIServerFlags, arg) {
			continue
		}
		more = append(more, arg)
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		delete(defaults, name) // Args come without it, there too
	}
	// No release since v1.24 has this flag; envtest asks the program, and never passes it then.
	return append(server.Configure().Disable("insecure-port").AsStrings(defaults), more...)
}

func defaults(server *envtest.APIServer, etcd string) map[string][]string {
	serving := server.SecureServing
	one := map[string]string{
		"etcd-servers":                     etcd,
		"service-cluster-ip-range":         "10.0.0.0/24",
		"allow-privileged":                 "true",
		"disable-admission-plugins":        "ServiceAccount",
		"cert-dir":                         server.CertDir,
		"authorization-mode":               "RBAC",
		"bind-address":                     serving.Address,
		"secure-port":                      serving.Port,
		"service-account-issuer":           Issuer,
		"service-account-key-file":         filepath.Join(server.CertDir, AccountCertFile),
		"service-account-signing-key-file": filepath.Join(server.CertDir, AccountKeyFile),
	}
	lists := map[string][]string{}
	for name, value := range one {
		lists[name] = []string{value}
	}
	return lists
}
