package scenarios

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/storage/memory"
)

// stores numbers the stores of a process, for their names.
var stores atomic.Int64

var startCommand = command{
	name:    "start",
	args:    "[--hold HOOK]... [--hold-all] [--delay HOOK=DURATION]... [--fail HOOK]... [-- FLAG...]",
	most:    anyNumber,
	summary: "start an API server on the script's store",
	details: `The first start creates the store, which keeps its content until the script
ends, whatever happens to the servers on it. Only one server runs at a time.

HOOK is the name of a post-start hook. --hold keeps it from running until it is
released, --hold-all holds all of them, --delay lets it run only after that
time, and --fail makes it fail instead of running. If a hook is held, start
returns as soon as the server accepts requests; otherwise it waits until the
server is ready. Each FLAG is one of kube-apiserver's.

After a start, requests come from a cluster admin again.`,
	example:   "start --hold crd-informer-synced -- --event-ttl=10m",
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
	hold    []string
	holdAll bool
	delay   []string // HOOK=DURATION
	fail    []string
	flags   []string // kube-apiserver's
}

func startFlags(flags *pflag.FlagSet) *startRequest {
	r := &startRequest{}
	flags.StringArrayVar(&r.hold, "hold", nil, "")
	flags.BoolVar(&r.holdAll, "hold-all", false, "")
	flags.StringArrayVar(&r.delay, "delay", nil, "")
	flags.StringArrayVar(&r.fail, "fail", nil, "")
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
func (r *startRequest) options() ([]envtest.Option, error) {
	// Upstream's own pauses cost nothing in virtual time and belong to the story.
	opts := []envtest.Option{envtest.HoldHook(r.hold...), envtest.WithFlags(r.flags...), envtest.WithUpstreamPauses()}
	if r.holdAll {
		opts = append(opts, envtest.HoldHook("*"))
	}
	for _, delay := range r.delay {
		hook, by, _ := strings.Cut(delay, "=")
		if duration, err := time.ParseDuration(by); err != nil || duration <= 0 {
			return nil, fmt.Errorf("%w: --delay %s is not like HOOK=10s", errUsage, delay)
		}
		opts = append(opts, envtest.WithFaults("delay hook/"+hook+" verb=post-start by="+by+" optional"))
	}
	for _, hook := range r.fail {
		opts = append(opts, envtest.WithFaults("fail hook/"+hook+" verb=post-start with=error optional"))
	}
	return opts, nil
}

func (s *session) start(ctx context.Context, request startRequest) error {
	if s.server != nil {
		return errors.New("an API server is running already; shut it down first, or use restart")
	}
	if s.opts.tamper.start != nil {
		s.opts.tamper.start(&request)
	}
	opts, err := request.options()
	if err != nil {
		return err
	}
	if s.store == nil {
		store := memory.New(fmt.Sprintf("script-%d", stores.Add(1)))
		if err := store.Start(ctx); err != nil {
			return err
		}
		s.store = store
	}
	opts = append(opts, envtest.WithSharedStore(s.store), envtest.WithObserver(s.story.observe))
	opts = append(opts, s.serverOptions()...)
	server, err := envtest.Launch(ctx, opts...)
	if err != nil {
		return err
	}
	s.server, s.identity, s.excused = server, server.Config(), false
	s.heldCaches = map[string]*fault.Entry{}
	if s.opts.tamper.started != nil {
		if err := s.opts.tamper.started(server); err != nil {
			return err
		}
	}
	return nil
}
