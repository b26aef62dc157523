package scenarios

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"snowglobe.test/envtest"
)

var startCommand = command{
	name:    "start",
	args:    "[--servers N] [--store memory|embedded|cluster] [--without-housekeeping] [-- FLAG...]",
	most:    anyNumber,
	summary: "start API servers on the script's store",
	details: `The first start creates the store, which keeps its content until the script
ends, whatever happens to the servers on it. It is memory (the default), embedded (one
real etcd) or cluster (three of them). Only memory can run in virtual time.

Servers are called apiserver-0, apiserver-1, and so on; there is one unless --servers
says otherwise. Each FLAG is a flag of kube-apiserver. For a story that spans days,
--without-housekeeping leaves out what a server does periodically without being asked,
such as its watch caches: a day then takes two seconds instead of half a minute.

Rules added before the start are in force from the first moment. If they hold
anything, start returns as soon as the servers accept requests; otherwise it waits
until they are ready. After a start, requests come from a cluster admin again.`,
	example:   "hold hook/crd-informer-synced\nstart -- --event-ttl=10m\nstart --servers 2",
	unbounded: true,
	prepare: func(flags *pflag.FlagSet) action {
		request := startFlags(flags)
		return func(ctx context.Context, s *session, args []string) error {
			if err := request.parse(flags, args); err != nil {
				return err
			}
			return s.start(ctx, *request)
		}
	},
}

type startRequest struct {
	servers int
	store   string
	flags   []string // kube-apiserver's

	withoutHousekeeping bool
}

func startFlags(flags *pflag.FlagSet) *startRequest {
	r := &startRequest{}
	flags.IntVar(&r.servers, "servers", 1, "")
	flags.StringVar(&r.store, "store", "", "")
	flags.BoolVar(&r.withoutHousekeeping, "without-housekeeping", false, "")
	return r
}

// parse takes the arguments left after the command's own flags.
func (r *startRequest) parse(flags *pflag.FlagSet, args []string) error {
	if dash := flags.ArgsLenAtDash(); dash > 0 || dash < 0 && len(args) > 0 {
		return fmt.Errorf("%w: %q; flags of kube-apiserver come after --", errUsage, args[0])
	}
	r.flags = args
	return nil
}

// options turns the request into options of envtest.
func (r *startRequest) options() []envtest.Option {
	// Upstream's own pauses cost nothing in virtual time and belong to the story.
	opts := []envtest.Option{envtest.WithReplicas(r.servers), envtest.WithFlags(r.flags...), envtest.WithUpstreamPauses()}
	if r.withoutHousekeeping {
		opts = append(opts, envtest.WithoutHousekeeping())
	}
	return opts
}

func (s *session) start(ctx context.Context, request startRequest) error {
	if s.server != nil {
		return errors.New("an API server is running already; shut it down first, or use restart")
	}
	if err := s.openStore(ctx, request.store); err != nil {
		return err
	}
	opts := append(request.options(), envtest.WithFaults(s.plan()), envtest.WithSharedStore(s.store), envtest.WithObserver(s.story.observe), envtest.WithDialer(s.dialFake))
	opts = append(opts, s.serverOptions()...)
	s.spent.Boots += request.servers
	booted := timing(&s.spent.Boot)
	server, err := envtest.Launch(ctx, opts...)
	booted()
	if err != nil {
		s.rules = nil
		return err
	}
	s.server, s.excused = server, false
	s.user, s.via, s.paths, s.mediaType = []string{"admin"}, nil, map[string]*envtest.Client{}, ""
	s.enforced()
	return s.identify()
}
