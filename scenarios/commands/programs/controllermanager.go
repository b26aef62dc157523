package programs

import (
	"cmp"
	"context"

	"github.com/spf13/pflag"

	"snowglobe.test/envtest/controllers"
	"snowglobe.test/internal/light"
	"snowglobe.test/scenarios/engine"
)

const controllerManagerName = "kube-controller-manager"

func (p *Programs) ControllerManager() engine.Command {
	return engine.Command{
		Name:    controllerManagerName,
		Args:    "[--stop | --crash] [CONTROLLER]...",
		Summary: "run upstream's controllers alongside the API servers",
		Details: `Each CONTROLLER is a name as in kube-controller-manager's --controllers flag; without any,
those run that need only an API server and nodes. It returns when they have seen the
state of the cluster. They run until the API servers are shut down; if a server crashes,
they wait for it. They have a path of their own to the servers, which
"partition client name=kube-controller-manager" cuts.

With --stop they end as if by SIGTERM; with --crash they end at once, in the middle of
whatever they are doing. Running the command again starts them afresh, with no state other
than what the API servers have.`,
		Example: "kube-controller-manager deployment replicaset\napply deployment.yaml\nkubectl rollout status deployment/web\nkube-controller-manager --crash",
		Needs:   p.servers.Running,
		LeftOut: light.Build,
		Static: func(flags *pflag.FlagSet, args []string) error {
			return cmp.Or(checkEnd(flags, args), engine.Misuse(controllers.Check(args...)))
		},
		Prepare: p.program(controllerManagerName, func(ctx context.Context, args []string) (*controllers.Program, error) {
			return controllers.Launch(ctx, p.servers.ControlPlane(), args...)
		}),
	}
}
