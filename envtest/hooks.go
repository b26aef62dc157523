package envtest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/trace"
	"snowglobe.test/internal/nearest"
)

// HoldHook keeps post-start hooks ("*" means all) from running until
// ControlPlane.ReleaseHook. Start then returns once the server accepts requests and
// the hooks are held; WaitReady waits for the rest. It is the rule "hold hook/NAME
// verb=post-start optional", ahead of the rules of WithFaults, which may delay,
// drop or fail a hook.
func HoldHook(names ...string) Option {
	return func(c *config) { c.heldHooks = append(c.heldHooks, names...) }
}

// everyHook is the name that stands for all.
const everyHook = "*"

// holdRules are HoldHook's rules. "*" stands alone, lest a hook be held twice.
func (c *config) holdRules() fault.Plan {
	names := c.heldHooks
	if slices.Contains(names, everyHook) {
		names = []string{everyHook}
	}
	var plan fault.Plan
	for _, name := range names {
		plan = append(plan, fault.Rule{Action: fault.Action{Kind: fault.Hold}, Match: postStartHook(name), Optional: true})
	}
	return plan
}

const hookPoint = "hook/"

func postStartHook(name string) fault.Match {
	return fault.Match{Point: hookPoint + name, Verb: string(trace.PostStart)}
}

// ReleaseHook lets a held post-start hook run, on every server, and opens
// HoldHook's gate, so that a Restart does not hold it again. If the hook is not held,
// the error names those that are.
func (cp *ControlPlane) ReleaseHook(name string) error {
	released := false
	for _, entry := range cp.faults.Rules() {
		gate := entry.Gate()
		if entry.Rule().Kind != fault.Hold {
			continue
		}
		for _, op := range heldHooks(gate, "") {
			if op.Point == hookPoint+name && gate.ReleaseOnly(op) {
				released = true
			}
		}
		if entry.Rule().Match == postStartHook(name) {
			gate.Open()
		}
	}
	if released {
		return nil
	}
	hooks, held := cp.first().Hooks()
	if !slices.Contains(hooks, name) {
		return fmt.Errorf("no post-start hook %q%s", name, nearest.DidYouMean(name, hooks))
	}
	return fmt.Errorf("post-start hook %q is not held; held are: %s%s", name, orNone(held), nearest.DidYouMean(name, held))
}

// heldHooks are the post-start hooks waiting at a gate; an empty server means all.
func heldHooks(gate *fault.Gate, server string) []fault.Operation {
	return slices.DeleteFunc(gate.Waiting(), func(op fault.Operation) bool {
		return !strings.HasPrefix(op.Point, hookPoint) || op.Verb != string(trace.PostStart) || server != "" && op.Server != server
	})
}

// Hooks returns the names of the post-start hooks, sorted, and those that rules
// currently hold. Once Start has returned, the hooks of HoldHook are held.
func (s *Server) Hooks() (all, held []string) {
	for _, entry := range s.cp.faults.Rules() {
		if entry.Rule().Kind != fault.Hold {
			continue
		}
		for _, op := range heldHooks(entry.Gate(), s.name) {
			held = append(held, strings.TrimPrefix(op.Point, hookPoint))
		}
	}
	slices.Sort(held)
	return s.chain().Hooks(), slices.Compact(held)
}

// awaitHeldHooks waits for the hooks that rules hold, since all run concurrently.
func (i *instance) awaitHeldHooks(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(i.run, func() { cancel(context.Cause(i.run)) })()
	for _, name := range i.hooksToBeHeld() {
		_, err := i.recorder.Await(ctx, func(r trace.Record) bool {
			hook, ok := r.Event.(trace.Hook)
			return ok && hook.Kind == trace.PostStart && hook.Name == name && r.Server == i.server.cp.traceName(i.server) && !r.Time.Before(i.began)
		})
		switch {
		case closed(i.failed):
			return i.failure
		case err != nil:
			return fmt.Errorf("post-start hook %q has not come to be held: %w", name, err)
		}
	}
	return nil
}

// hooksToBeHeld are those whose first matching rule holds them unconditionally.
func (i *instance) hooksToBeHeld() []string {
	var names []string
	for _, name := range i.chain.Load().Hooks() {
		op := fault.Operation{Point: hookPoint + name, Phase: fault.Before, Server: i.server.name, Verb: string(trace.PostStart)}
		for _, entry := range i.server.cp.faults.Rules() {
			rule := entry.Rule()
			if !rule.Covers(&op) {
				continue
			}
			if rule.Action == (fault.Action{Kind: fault.Hold}) && rule.Match == (fault.Match{Point: rule.Point, Server: rule.Server, Verb: rule.Verb}) {
				names = append(names, name)
			}
			break
		}
	}
	return names
}
