//go:build !windows

package stock

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	crenvtest "sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Run runs both programs, with flags of kube-apiserver beside those that they need, and returns
// how an administrator reaches it. They can't be interrupted while they start, but each may take
// no longer than the timeout. Who has called stop has nothing left of them.
func (p Programs) Run(timeout time.Duration, flags map[string]string) (config *rest.Config, stop func() error, err error) {
	programs := &crenvtest.ControlPlane{
		APIServer: &crenvtest.APIServer{Path: p.path(apiServer), StartTimeout: timeout},
		Etcd:      &crenvtest.Etcd{Path: p.path(etcd), StartTimeout: timeout},
	}
	arguments := programs.GetAPIServer().Configure().Set("authorization-mode", "Node", "RBAC") // as installers have it
	for name, value := range flags {
		arguments.Set(name, value)
	}
	if err := programs.Start(); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("run the programs in %s: %w", p.Folder, err), programs.Stop())
	}
	admin, err := programs.AddUser(crenvtest.User{Name: "admin", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return nil, nil, errors.Join(err, programs.Stop())
	}
	return admin.Config(), programs.Stop, nil
}
