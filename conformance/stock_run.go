//go:build !windows

package conformance

import (
	"errors"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	crenvtest "sigs.k8s.io/controller-runtime/pkg/envtest"
)

// runStock runs the programs in a folder, and returns how an administrator reaches them. They
// can't be interrupted while they start, but have timeouts of their own.
func runStock(folder string, timeout time.Duration) (config *rest.Config, stop func() error, err error) {
	programs := &crenvtest.ControlPlane{
		APIServer: &crenvtest.APIServer{Path: filepath.Join(folder, stockPrograms[0]), StartTimeout: timeout},
		Etcd:      &crenvtest.Etcd{Path: filepath.Join(folder, stockPrograms[1]), StartTimeout: timeout},
	}
	programs.GetAPIServer().Configure().Set("authorization-mode", "Node", "RBAC") // as installers have it
	if err := programs.Start(); err != nil {
		return nil, nil, errors.Join(err, programs.Stop())
	}
	admin, err := programs.AddUser(crenvtest.User{Name: "admin", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return nil, nil, errors.Join(err, programs.Stop())
	}
	return admin.Config(), programs.Stop, nil
}
