package scenarios

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/trace"
	"snowglobe.test/internal/nearest"
)

var awaitCommand = command{
	name:  "await",
	args:  "hook HOOK start|end|held|released | check CHECK ok|failing | signal SIGNAL | held POINT [KEY=VALUE]... | fired ACTION POINT [KEY=VALUE]... | crash [REGEXP]",
	least: 1, most: anyNumber,
	summary: "wait for something to happen, if it has not happened yet",
	details: `A hook is a post-start hook, a check is one of /readyz's, and a signal is a lifecycle
signal, all under their upstream names. "held" waits until an operation is waiting at
that point, and "fired" waits until a rule fires for the first time.

A crash is anything that would have ended a kube-apiserver process: a failed
post-start hook, a fatal error, a panic. The reason is put into stdout, and must match
REGEXP if one is given. What is left of the server is stopped. A deliberate crash, by the
crash command or a crash rule, does not count: use "await fired" for a rule.

It fails after ` + patience.String() + ` in the script's clock.`,
	example:  "await hook crd-informer-synced end\nawait check poststarthook/crd-informer-synced ok\nawait signal MuxAndDiscoveryComplete\nawait held store/put resource=configmaps\nawait crash 'scheduling/bootstrap-system-priority-classes'",
	onServer: true,
	run: func(ctx context.Context, s *session, args []string) error {
		switch {
		case len(args) == 3 && args[0] == "hook":
			return awaitHook(ctx, s.server, args[1], trace.Phase(args[2]))
		case len(args) == 3 && args[0] == "check" && (args[2] == "ok" || args[2] == "failing"):
			return awaitCheck(ctx, s.server, args[1], args[2] == "ok")
		case len(args) == 2 && args[0] == "signal":
			return awaitSignal(ctx, s.server, args[1])
		case len(args) >= 2 && args[0] == "held":
			return s.awaitHeld(ctx, ruleText(args[1:]))
		case len(args) >= 3 && args[0] == "fired":
			return s.awaitFired(ctx, ruleText(args[1:]))
		case len(args) <= 2 && args[0] == "crash":
			return s.awaitCrash(ctx, strings.Join(args[1:], ""))
		}
		return errUsage
	},
}

func awaitHook(ctx context.Context, server *envtest.ControlPlane, name string, phase trace.Phase) error {
	phases := []trace.Phase{trace.Held, trace.Released, trace.Start, trace.End}
	if !slices.Contains(phases, phase) {
		return fmt.Errorf("%w: a hook can't be awaited to %q", errUsage, phase)
	}
	if hooks, _ := apiServer(server).Hooks(); !slices.Contains(hooks, name) {
		return fmt.Errorf("%w: no post-start hook %q%s", errUsage, name, nearest.DidYouMean(name, hooks))
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
func (s *session) awaitHeld(ctx context.Context, text string) error {
	match, err := fault.ParseMatch(text, nil)
	if err != nil {
		return fmt.Errorf("%w: %q: %w", errUsage, text, err)
	}
	held := func() bool {
		for _, h := range s.server.Faults().Held() {
			if h.Rule.Kind != "" && match.Covers(&h.Operation) {
				return true
			}
		}
		return false
	}
	if held() {
		return nil
	}
	// An operation is recorded when it waits already.
	err = awaitEvent(ctx, s.server, func(r trace.Record) bool {
		event, ok := r.Event.(trace.Fault)
		return ok && event.Phase == trace.Held && held()
	})
	if err != nil {
		return fmt.Errorf("nothing is held at %s: %w; held are: %s", match, err, orNone(s.heldPoints()))
	}
	return nil
}

// awaitFired waits until a rule of the script fires.
func (s *session) awaitFired(ctx context.Context, text string) error {
	wanted, err := fault.Parse(text, nil)
	if err != nil {
		return fmt.Errorf("%w: %q: %w", errUsage, text, err)
	}
	for _, rule := range s.rules {
		wanted.Optional = rule.Optional
		if rule.Rule != wanted {
			continue
		}
		name := rule.String()
		return awaitEvent(ctx, s.server, func(r trace.Record) bool {
			fired, ok := r.Event.(trace.Fault)
			return ok && fired.Rule == name
		})
	}
	return fmt.Errorf("%w: there is no rule %q; the rules of the script are: %s", errUsage, wanted, s.ruleNames())
}

// awaitCrash waits until the API server crashes, and stops what is left of it.
func (s *session) awaitCrash(ctx context.Context, reason string) error {
	match, err := regexp.Compile(reason)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	select {
	case <-s.server.Crashed():
	case <-ctx.Done():
		return fmt.Errorf("the API server has not crashed: %w", context.Cause(ctx))
	}
	crash := s.server.Err()
	fmt.Fprintln(&s.out, crash)
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

// checkOfHook names the readiness check that turns ok when a post-start hook ends.
func checkOfHook(hook string) string { return "poststarthook/" + hook }

// checkPause is the time between two looks at the checks: nothing announces a change.
const checkPause = 5 * time.Millisecond

// awaitCheck waits until a check of /readyz passes, or fails if ok is false.
func awaitCheck(ctx context.Context, server *envtest.ControlPlane, name string, ok bool) error {
	for {
		ready, red := apiServer(server).Ready(ctx)
		if known := readyzChecks(server); !slices.Contains(known, name) {
			return fmt.Errorf("%w: /readyz has no check %q%s", errUsage, name, nearest.DidYouMean(name, known))
		}
		answered := ready || len(red) > 0 // there is no answer if the context ends meanwhile
		if answered && slices.Contains(red, name) != ok {
			return nil
		}
		select {
		case <-time.After(checkPause):
		case <-server.Crashed():
			return fmt.Errorf("the API server crashed: %w", server.Err())
		case <-ctx.Done():
			_, held := apiServer(server).Hooks()
			return fmt.Errorf("check %q is still %s: %w; hooks that are held: %s", name,
				map[bool]string{true: "failing", false: "ok"}[ok], context.Cause(ctx), strings.Join(held, ", "))
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
