//go:build snowglobe_light

package controllers

import (
	"context"

	"snowglobe.test/envtest"
	"snowglobe.test/internal/light"
)

// Launch returns light.ErrLeftOut.
func Launch(context.Context, *envtest.ControlPlane, ...string) (*Program, error) {
	return nil, light.ErrLeftOut
}

// LaunchScheduler returns light.ErrLeftOut.
func LaunchScheduler(context.Context, *envtest.ControlPlane) (*Program, error) {
	return nil, light.ErrLeftOut
}

// Check finds nothing wrong: which controllers there are is left out too.
func Check(...string) error { return nil }

// MakeServiceAccounts reports false.
func MakeServiceAccounts(...string) bool { return false }
