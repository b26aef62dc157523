package stock

import (
	"errors"
	"time"

	"k8s.io/client-go/rest"
)

// Run fails: controller-runtime's envtest does not build for Windows in the required version.
func (p Programs) Run(time.Duration, map[string]string) (config *rest.Config, stop func() error, err error) {
	return nil, nil, errors.New("controller-runtime's envtest does not build for Windows")
}
