package servers

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/trace"
	"snowglobe.test/internal/nearest"
	"snowglobe.test/scenarios/engine"
)

func (s *Servers) Await() engine.Command {
	return engine.Command{
		Name: "await",
		Args: "hook HOOK start|end|held|released | check CHECK ok|failing | signal SIGNAL | " +
			"held POINT [KEY=VALUE]... | fired ACTION POINT [KEY=VALUE]... | crash [REGEXP]",
		Asserts: true,
		Summary: "wait for something to happen, if it has not happened yet",
		Details: `A hook is a post-start hook, a check is one of /readyz's, and a signal is a lifecycle
signal, all under their upstream names. "held" waits until an operation is waiting at
that point, and "fired" waits until a rule fires for the first time.

A crash is anything that would have ended a kube-apiserver process: a failed
post-start hook, a fatal error, a panic. The reason is put into stdout, and must match
REGEXP if one is given. What is left of the server is stopped. A deliberate crash, by the
crash command or a crash rule, does not count: use "await fired" for a rule.

It fails after ` + engine.Patience.String() + ` in the script's clock.`,
		Example: "await hook crd-informer-synced end\nawait check poststarthook/crd-informer-synced ok\nawait signal MuxAndDiscoveryComplete\nawait held store/put resource=configmaps\nawait crash 'scheduling/bootstrap-system-priority-classes'",
		Needs:   s.Running,
		Static:  func(_ *pflag.FlagSet, args []string) error { return checkAwait(args) },
		Run: func(ctx context.Context, args []string) error {
			switch args[0] {
			case "hook":
				return awaitHook(ctx, s.plane, args[1], trace.Phase(args[2]))
			case "check":
				return awaitCheck(ctx, s.plane, args[1], args[2] == "ok")
			case "signal":
				return awaitSignal(ctx, s.plane, args[1])
			case "held":
				return s.awaitHeld(ctx, ruleText(args[1:]))
			case "fired":
				return s.awaitFired(ctx, ruleText(args[1:]))
			}
			return s.awaitCrash(ctx, strings.Join(args[1:], ""))
		},
	}
}

// checkAwait refuses what cannot be waited for.
func checkAwait(args []string) error {
	switch {
	case len(args) == 3 && args[0] == "hook":
		return checkHookPhase(trace.Phase(args[2]))
	case len(args) == 3 && args[0] == "check" && (args[2] == "ok" || args[2] == "failing"),
		len(args) == 2 && args[0] == "signal":
		return nil
	case len(args) >= 2 && args[0] == "held":
		return checkMatch(nil, args[1:])
	case len(args) >= 3 && args[0] == "fired":
		return checkRule(ruleText(args[1:]))
	case len(args) <= 2 && args[0] == "crash":
		_, err := regexp.Compile(strings.Join(args[1:], ""))
		return engine.Misuse(err)
	}
	return engine.ErrUsage
}

func checkHookPhase(phase trace.Phase) error {
	if !slices.Contains([]trace.Phase{trace.Held, trace.Released, trace.Start, trace.End}, phase) {
		return fmt.Errorf("%w: a hook can't be awaited to %q", engine.ErrUsage, phase)
	}
	return nil
}

func awaitHook(ctx context.Context, server *envtest.ControlPlane, name string, phase trace.Phase) error {
	if hooks := hooksOf(server); !slices.Contains(hooks, name) {
		return fmt.Errorf("%w: no post-start hook %q%s", engine.ErrUsage, name, nearest.DidYouMean(name, hooks))
	}
	return awaitEvent(ctx, server, func(r trace.Record) bool {
		hook, ok := r.Event.(trace.Hook)
		return ok && hook.Kind == trace.PostStart && hook.Name == name && hook.Phase == phase
	})
}

func awaitSignal(ctx context.Context, server *envtest.ControlPlane, name string) error {
	return awaitEvent(ctx, server, func(r trace.Record) bool {
		signal, ok := r.Event.(trace.Signal)
		return ok && signal.Name == name
	})
}

// awaitHeld waits until an operation that matches is held by a rule.
func (s *Servers) awaitHeld(ctx context.Context, text string) error {
	match, _ := readMatch(text)
	held := func() bool {
		return slices.ContainsFunc(s.plane.Faults().Held(), func(h fault.Held) bool { return h.Rule.Kind != "" && match.Covers(&h.Operation) })
	}
	if held() {
		return nil
	}
	// An operation is in Held before its event is recorded.
	err := awaitEvent(ctx, s.plane, func(r trace.Record) bool {
		event, ok := r.Event.(trace.Fault)
		return ok && event.Phase == trace.Held && held()
	})
	if err != nil {
		return fmt.Errorf("nothing is held at %s: %w; held are: %s", match, err, orNone(s.plane.Faults().HeldPoints()))
	}
	return nil
}

// awaitFired waits until a rule of the script fires.
func (s *Servers) awaitFired(ctx context.Context, text string) error {
	wanted, _ := fault.Parse(text, nil)
	for _, rule := range s.rules {
		wanted.Optional = rule.Optional
		if rule.Rule != wanted {
			continue
		}
		name := rule.String()
		return awaitEvent(ctx, s.plane, func(r trace.Record) bool {
			fired, ok := r.Event.(trace.Fault)
			return ok && fired.Rule == name
		})
	}
	return fmt.Errorf("%w: there is no rule %q; the rules of the script are: %s", engine.ErrUsage, wanted, s.ruleNames())
}

// awaitCrash waits until the API server crashes, and stops what is left of it.
func (s *Servers) awaitCrash(ctx context.Context, reason string) error {
	match := regexp.MustCompile(reason)
	select {
	case <-s.plane.Crashed():
	case <-ctx.Done():
		return fmt.Errorf("the API server has not crashed: %w", context.Cause(ctx))
	}
	crash := s.plane.Err()
	fmt.Fprintln(&s.run.Stdout, crash)
	if !match.MatchString(crash.Error()) {
		return fmt.Errorf("the API server crashed, but the reason does not match %q: %w", match, crash)
	}
	s.excused = true
	return s.stop(ctx)
}

// awaitEvent waits for an event; it fails if the server crashes first.
func awaitEvent(ctx context.Context, server *envtest.ControlPlane, match func(trace.Record) bool) error {
	var watching sync.WaitGroup
	defer watching.Wait()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watching.Go(func() {
		select {
		case <-server.Crashed():
			cancel(fmt.Errorf("the API server crashed: %w", server.Err()))
		case <-ctx.Done():
		}
	})
	_, err := server.Trace().Await(ctx, match)
	return err
}

// checkPause is the time between two requests for /readyz. It is polled because no event
// says that a check has changed.
const checkPause = 5 * time.Millisecond

// awaitCheck waits until a check of /readyz passes, or fails if ok is false.
func awaitCheck(ctx context.Context, server *envtest.ControlPlane, name string, ok bool) error {
	for {
		ready, failing := server.Servers()[0].Ready(ctx)
		if known := readyzChecks(server); !slices.Contains(known, name) {
			return fmt.Errorf("%w: /readyz has no check %q%s", engine.ErrUsage, name, nearest.DidYouMean(name, known))
		}
		answered := ready || len(failing) > 0 // there is no answer if the context ends meanwhile
		if answered && slices.Contains(failing, name) != ok {
			return nil
		}
		select {
		case <-time.After(checkPause):
		case <-server.Crashed():
			return fmt.Errorf("the API server crashed: %w", server.Err())
		case <-ctx.Done():
			return fmt.Errorf("check %q is still %s: %w; hooks that are held: %s", name,
				map[bool]string{true: "failing", false: "ok"}[ok], context.Cause(ctx), strings.Join(heldHooks(server), ", "))
		}
	}
}

// readyzChecks lists all checks of /readyz recorded so far.
func readyzChecks(server *envtest.ControlPlane) []string {
	var names []string
	for _, rec := range server.Trace().Records() {
		if check, ok := rec.Event.(trace.Check); ok && check.Endpoint == "readyz" && !slices.Contains(names, check.Name) {
			names = append(names, check.Name)
		}
	}
	return names
}
