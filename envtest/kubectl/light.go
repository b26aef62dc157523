//go:build snowglobe_light

package kubectl

import (
	"context"

	"snowglobe.test/internal/light"
)

// Run returns light.ErrLeftOut.
func (*Cmd) Run(context.Context) error { return light.ErrLeftOut }
