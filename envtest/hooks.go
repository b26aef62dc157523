package envtest

import (
	"context"
	"fmt"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/trace"
)

// awaitHeldHooks waits until each post-start hook that a rule holds is indeed held. Hooks run
// concurrently, so one may not have got that far when the server accepts requests.
func (i *instance) awaitHeldHooks(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(i.run, func() { cancel(context.Cause(i.run)) })()
	for _, name := range i.hooksToBeHeld() {
		_, err := i.recorder.Await(ctx, func(r trace.Record) bool {
			hook, ok := r.Event.(trace.Hook)
			return ok && hook.Kind == trace.PostStart && hook.Name == name && r.Server == i.server.cp.traceName(i.server) && !r.Time.Before(i.began)
		})
		if failure := i.life.err(); failure != nil {
			return failure
		}
		if err != nil {
			return fmt.Errorf("post-start hook %q has not come to be held: %w", name, err)
		}
	}
	return nil
}

// hooksToBeHeld are those whose first matching rule holds them unconditionally.
func (i *instance) hooksToBeHeld() []string {
	var names []string
	for _, name := range i.chain.Load().Hooks() {
		op := fault.Operation{Point: fault.HookPoint + name, Phase: fault.Before, Server: i.server.name, Verb: string(trace.PostStart)}
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
