package programs

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"snowglobe.test/scenarios/commands/clients"
	"snowglobe.test/scenarios/engine"
)

func (p *Programs) Candidate() engine.Command {
	return engine.Command{
		Name:     "candidate",
		Formerly: "elect",
		Args:     "[--lease-duration 15s] [--renew-deadline 10s] [--retry-period 2s] NAME [NAMESPACE/]LEASE",
		Needs:    p.servers.Running,
		Summary:  "run a candidate for leader election in the background",
		Details: `It uses client-go's leader election, with the defaults of Kubernetes' own controllers,
and NAME as the identity. "next" takes LEADING when it becomes the leader, and LOST
when it can no longer be sure that it is. It ends when it has lost, or with "unwatch", and
then leaves the lease to expire. It keeps using the user and path that are current when it
starts.`,
		Example: "candidate one kube-system/demo\nnext one LEADING\npartition client name=client-0\nnext one LOST",
		Prepare: func(flags *pflag.FlagSet) engine.Action {
			var config leaderelection.LeaderElectionConfig
			flags.DurationVar(&config.LeaseDuration, "lease-duration", 15*time.Second, "")
			flags.DurationVar(&config.RenewDeadline, "renew-deadline", 10*time.Second, "")
			flags.DurationVar(&config.RetryPeriod, "retry-period", 2*time.Second, "")
			return func(_ context.Context, args []string) error {
				return p.runCandidate(args[0], args[1], config)
			}
		},
	}
}

// candidateAgent is the user agent of candidates.
const candidateAgent = "script-candidate"

// runCandidate lets a candidate stand for election under its name.
func (p *Programs) runCandidate(name, lease string, config leaderelection.LeaderElectionConfig) error {
	return p.clients.Begin(name, func(ctx context.Context, s *clients.Stream) error {
		client, err := p.clients.Typed(candidateAgent)
		if err != nil {
			return err
		}
		namespace, lease, ok := strings.Cut(lease, "/")
		if !ok {
			namespace, lease = clients.DefaultNamespace, namespace
		}
		config.Name = name
		config.Lock = &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: lease},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		}
		config.Callbacks = leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { s.Add(clients.Event{Kind: clients.Leading}) },
			OnStoppedLeading: func() { s.Add(clients.Event{Kind: clients.Lost}) },
		}
		elector, err := leaderelection.NewLeaderElector(config)
		if err != nil {
			return err
		}
		s.Go(func() {
			elector.Run(ctx)
			s.Add(clients.Event{Kind: clients.End})
		})
		return nil
	})
}
