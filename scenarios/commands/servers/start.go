package servers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"snowglobe.test/envtest"
	"snowglobe.test/internal/wall"
	"snowglobe.test/scenarios/engine"
)

const startArgs = "[--servers N] [--store memory|embedded|cluster] [--without-housekeeping] [--timeout D] [-- FLAG...]"

func (s *Servers) Start() engine.Command {
	return engine.Command{
		Name:    "start",
		Args:    startArgs,
		Summary: "start API servers on the script's store",
		Details: `The first start creates the store, which keeps its content until the script
ends, whatever happens to the servers on it. It is memory (the default), embedded (one
real etcd) or cluster (three of them). Only memory can run in virtual time.

Servers are called apiserver-0, apiserver-1, and so on; there is one unless --servers
says otherwise. Each FLAG is a flag of kube-apiserver. For a story that spans days,
--without-housekeeping leaves out what a server does periodically without being asked,
such as its watch caches: a day then takes two seconds instead of half a minute.

Rules added before the start are in force from the first moment. If they hold
anything, start returns as soon as the servers accept requests; otherwise it waits
until they are ready, for a minute or for the time of --timeout. After a start, requests come from a cluster admin again.`,
		Example:   "hold hook/crd-informer-synced\nstart -- --event-ttl=10m\nstart --servers 2",
		Unbounded: true,
		Alone:     isAlone,
		Begins:    func([]string) bool { return true },
		Static:    checkStart,
		Prepare: func(flags *pflag.FlagSet) engine.Action {
			request := startFlags(flags)
			return func(ctx context.Context, args []string) error {
				request.flags = args
				return s.start(ctx, *request)
			}
		},
	}
}

// isAlone reports whether the servers have other feature gates than the default, or no
// housekeeping: both are the process's. What is in a variable may be such a flag.
func isAlone(flags *pflag.FlagSet, args []string) bool {
	withoutHousekeeping, _ := flags.GetBool("without-housekeeping")
	return withoutHousekeeping || slices.ContainsFunc(args, func(flag string) bool {
		return strings.HasPrefix(flag, "--feature-gates") || strings.HasPrefix(flag, "--emulat") || strings.HasPrefix(flag, "$")
	})
}

type startRequest struct {
	servers int
	store   string
	flags   []string // kube-apiserver's

	withoutHousekeeping bool
	timeout             time.Duration
}

func startFlags(flags *pflag.FlagSet) *startRequest {
	r := &startRequest{}
	flags.IntVar(&r.servers, "servers", 1, "")
	flags.StringVar(&r.store, "store", "", "")
	flags.DurationVar(&r.timeout, "timeout", 0, "")
	flags.BoolVar(&r.withoutHousekeeping, "without-housekeeping", false, "")
	return r
}

// checkStart refuses what no servers can be started with.
func checkStart(flags *pflag.FlagSet, args []string) error {
	servers, serversErr := flags.GetInt("servers")
	store, storeErr := flags.GetString("store")
	timeout, timeoutErr := flags.GetDuration("timeout")
	switch dash := flags.ArgsLenAtDash(); {
	case dash > 0 || dash < 0 && len(args) > 0:
		return fmt.Errorf("%w: %q; flags of kube-apiserver come after --", engine.ErrUsage, args[0])
	case servers < 1:
		return fmt.Errorf("%w: there can't be %d servers", engine.ErrUsage, servers)
	case flags.Changed("timeout") && timeout <= 0:
		return fmt.Errorf("%w: --timeout %s is no time to wait; give one like 2m", engine.ErrUsage, timeout)
	case store != "":
		return checkStoreKind(store)
	}
	return errors.Join(serversErr, storeErr, timeoutErr)
}

// options turns the request into options of envtest.
func (r *startRequest) options() []envtest.Option {
	opts := []envtest.Option{envtest.WithReplicas(r.servers), envtest.WithFlags(r.flags...), envtest.WithTimeouts(r.timeout, 0)}
	if r.withoutHousekeeping {
		opts = append(opts, envtest.WithoutHousekeeping())
	}
	return opts
}

func (s *Servers) start(ctx context.Context, request startRequest) error {
	if s.plane != nil {
		return errors.New("an API server is running already; shut it down first, or use restart")
	}
	if err := s.openStore(ctx, request.store); err != nil {
		return err
	}
	opts := append(request.options(), s.options()...)
	s.spent.Boots += request.servers
	booted := wall.Timing(&s.spent.Boot)
	plane, err := envtest.Launch(ctx, opts...)
	booted()
	if err != nil {
		s.rules = nil
		return err
	}
	s.plane, s.excused = plane, false
	s.enforced()
	var errs []error
	for _, begin := range s.onStart {
		errs = append(errs, begin(plane))
	}
	return errors.Join(errs...)
}
