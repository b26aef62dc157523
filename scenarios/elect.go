package scenarios

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// The events of a candidate, besides END.
const (
	leadingEvent watch.EventType = "LEADING"
	lostEvent    watch.EventType = "LOST"
)

var electCommand = command{
	name:  "elect",
	args:  "[--lease-duration 15s] [--renew-deadline 10s] [--retry-period 2s] NAME [NAMESPACE/]LEASE",
	least: 2, most: 2,
	summary: "run a candidate for leader election in the background",
	details: `It uses client-go's leader election, with the defaults of Kubernetes' own controllers,
and NAME as the identity. "event" takes LEADING when it becomes the leader, and LOST
when it can no longer be sure that it is. It ends when it has lost, or with "unwatch", and
then leaves the lease to expire. It keeps using the user and path that are current when it
starts.`,
	example: "elect one kube-system/demo\nevent one LEADING\npartition client name=client-0\nevent one LOST",
	prepare: func(flags *pflag.FlagSet) action {
		var config leaderelection.LeaderElectionConfig
		flags.DurationVar(&config.LeaseDuration, "lease-duration", 15*time.Second, "")
		flags.DurationVar(&config.RenewDeadline, "renew-deadline", 10*time.Second, "")
		flags.DurationVar(&config.RetryPeriod, "retry-period", 2*time.Second, "")
		return func(_ context.Context, s *session, args []string) error {
			if s.server == nil {
				return errNoServer
			}
			return s.elect(args[0], args[1], config)
		}
	},
}

// candidateAgent is the user agent of candidates.
const candidateAgent = "script-candidate"

// elect lets a candidate stand for election under its name.
func (s *session) elect(name, lease string, config leaderelection.LeaderElectionConfig) error {
	if err := s.free(name); err != nil {
		return err
	}
	clientConfig := rest.CopyConfig(s.identity)
	clientConfig.UserAgent = candidateAgent
	client, err := kubernetes.NewForConfig(clientConfig)
	if err != nil {
		return err
	}
	namespace, lease, ok := strings.Cut(lease, "/")
	if !ok {
		namespace, lease = defaultNamespace, namespace
	}
	ctx, cancel := s.background()
	begun := newStream(cancel)
	config.Name = name
	config.Lock = &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: lease},
		Client:     client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: name},
	}
	config.Callbacks = leaderelection.LeaderCallbacks{
		OnStartedLeading: func(context.Context) { begun.add(streamEvent{kind: leadingEvent}) },
		OnStoppedLeading: func() { begun.add(streamEvent{kind: lostEvent}) },
	}
	elector, err := leaderelection.NewLeaderElector(config)
	if err != nil {
		cancel()
		return err
	}
	begun.running.Go(func() {
		elector.Run(ctx)
		begun.add(streamEvent{kind: endEvent})
	})
	s.streams[name] = begun
	return nil
}
