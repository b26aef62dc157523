package scenarios

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"snowglobe.test/envtest/controllers"
)

const controllerManagerName = "kube-controller-manager"

var controllerManagerCommand = command{
	name:    controllerManagerName,
	args:    "[--stop | --crash] [CONTROLLER]...",
	most:    anyNumber,
	summary: "run upstream's controllers alongside the API servers",
	details: `Each CONTROLLER is a name as in kube-controller-manager's --controllers flag; without any,
those run that need only an API server and nodes. It returns when they have seen the
state of the cluster. They run until the API servers are shut down; if a server crashes,
they wait for it. They have their own clients, which "partition client" can cut off.

With --stop they end as if by SIGTERM; with --crash they end at once, in the middle of
whatever they are doing. Running the command again starts them afresh, with no state other
than what the API servers have.`,
	example:  "kube-controller-manager deployment replicaset\napply deployment.yaml\nkubectl rollout status deployment/web\nkube-controller-manager --crash",
	onServer: true,
	static:   func(args []string) error { return checkControllers(withoutFlags(args)) },
	prepare: func(flags *pflag.FlagSet) action {
		end := endFlags(flags)
		return func(ctx context.Context, s *session, args []string) error {
			ends, err := end.asked(args)
			if err == nil {
				err = checkControllers(args)
			}
			switch {
			case err != nil:
				return err
			case ends:
				return s.endProgram(ctx, controllerManagerName, *end)
			}
			return s.startProgram(controllerManagerName, func() (*controllers.Program, error) { return controllers.Launch(ctx, s.server, args...) })
		}
	},
}

func checkControllers(names []string) error {
	if err := controllers.Check(names...); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return nil
}
