package programs

import (
	"context"

	"snowglobe.test/envtest/controllers"
	"snowglobe.test/internal/light"
	"snowglobe.test/scenarios/engine"
)

const schedulerName = "kube-scheduler"

func (p *Programs) Scheduler() engine.Command {
	return engine.Command{
		Name:    schedulerName,
		Args:    "[--stop | --crash]",
		Summary: "run upstream's scheduler alongside the API servers",
		Details: `It binds Pods to nodes, which the command "nodes" creates. It runs until the API servers
are shut down; --stop ends it as SIGTERM would, and --crash ends it at once.`,
		Example: "nodes --count 3\nkube-scheduler\napply pod.yaml\nkubectl wait --for=condition=PodScheduled pod/web",
		Needs:   p.servers.Running,
		LeftOut: light.Build,
		Static:  checkEnd,
		Prepare: p.program(schedulerName, func(ctx context.Context, _ []string) (*controllers.Program, error) {
			return controllers.LaunchScheduler(ctx, p.servers.ControlPlane())
		}),
	}
}
