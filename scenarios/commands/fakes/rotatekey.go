package fakes

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"snowglobe.test/scenarios/engine"
)

func (f *Fakes) RotateKey() engine.Command {
	return engine.Command{
		Name:     "rotate-key",
		Formerly: "rotate",
		Args:     "[--drop] HOST",
		Summary:  "make a fake OIDC issuer or KMS plugin use a new key from now on",
		Details: `The keys are called key-1, key-2, and so on. The old ones stay known; with --drop, only
the new one is.`,
		Example:    "rotate-key issuer.example.com\nrotate-key --drop kms.example.com",
		NoNegation: true,
		Prepare: func(flags *pflag.FlagSet) engine.Action {
			drop := flags.Bool("drop", false, "")
			return func(_ context.Context, args []string) error {
				found, err := f.fakeAt(args[0])
				if err != nil {
					return err
				}
				if found.rotate == nil {
					return fmt.Errorf("%w: %s has no keys; fakes of the kinds oidc and kms do", engine.ErrUsage, args[0])
				}
				return found.rotate(*drop)
			}
		},
	}
}
