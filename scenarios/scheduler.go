package scenarios

import (
	"context"

	"github.com/spf13/pflag"

	"snowglobe.test/envtest/controllers"
)

const schedulerName = "kube-scheduler"

var schedulerCommand = command{
	name:    schedulerName,
	args:    "[--stop | --crash]",
	summary: "run upstream's scheduler alongside the API servers",
	details: `It binds Pods to nodes, which the command "nodes" creates. It runs until the API servers
are shut down; --stop ends it as SIGTERM would, and --crash ends it at once.`,
	example:  "nodes --count 3\nkube-scheduler\napply pod.yaml\nkubectl wait --for=condition=PodScheduled pod/web",
	onServer: true,
	prepare: func(flags *pflag.FlagSet) action {
		end := endFlags(flags)
		return func(ctx context.Context, s *session, args []string) error {
			ends, err := end.asked(args)
			switch {
			case err != nil:
				return err
			case ends:
				return s.endProgram(ctx, schedulerName, *end)
			}
			return s.startProgram(schedulerName, func() (*controllers.Program, error) { return controllers.LaunchScheduler(ctx, s.server) })
		}
	},
}
