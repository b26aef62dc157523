package scenarios

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
)

var rotateCommand = command{
	name:  "rotate",
	args:  "[--drop] HOST",
	least: 1, most: 1,
	summary: "make a fake OIDC issuer or KMS plugin use a new key from now on",
	details: `The keys are called key-1, key-2, and so on. The old ones stay known; with --drop, only
the new one is.`,
	example:    "rotate issuer.example.com\nrotate --drop kms.example.com",
	noNegation: true,
	prepare: func(flags *pflag.FlagSet) action {
		drop := flags.Bool("drop", false, "")
		return func(_ context.Context, s *session, args []string) error {
			found, err := s.fakeAt(args[0])
			if err != nil {
				return err
			}
			if found.rotate == nil {
				return fmt.Errorf("%w: %s has no keys; fakes of the kinds oidc and kms do", errUsage, args[0])
			}
			return found.rotate(*drop)
		}
	},
}
