//go:build !windows

package startup

import (
	"context"
	"errors"
	"fmt"
	"time"

	crenvtest "sigs.k8s.io/controller-runtime/pkg/envtest"
)

// bootEnvtest starts and stops controller-runtime's envtest with its defaults on the
// binaries in a folder. It can't be interrupted, but has timeouts of its own.
func bootEnvtest(ctx context.Context, folder string) (start, stop time.Duration, err error) {
	if err := ctx.Err(); err != nil {
		return 0, 0, err
	}
	environment := &crenvtest.Environment{BinaryAssetsDirectory: folder}
	begun := time.Now()
	_, err = environment.Start()
	start = time.Since(begun)
	if err != nil {
		return 0, 0, errors.Join(fmt.Errorf("start: %w", err), environment.Stop())
	}
	begun = time.Now()
	if err := environment.Stop(); err != nil {
		return 0, 0, fmt.Errorf("stop: %w", err)
	}
	return start, time.Since(begun), nil
}
