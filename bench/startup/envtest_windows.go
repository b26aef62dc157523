package startup

import (
	"context"
	"errors"
	"time"
)

// bootEnvtest fails: controller-runtime's envtest does not build for Windows in the
// required version.
func bootEnvtest(context.Context, string) (start, stop time.Duration, err error) {
	return 0, 0, errors.New("controller-runtime's envtest does not build for Windows")
}
