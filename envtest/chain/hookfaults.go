package chain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"snowglobe.test/envtest/chain/inject"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/trace"
)

// HookFault is what happens to a post-start hook before it runs: a rule of the
// chain's own, which is added when the names of the hooks are known.
type HookFault struct {
	// Hook is a name, or EveryHook.
	Hook string
	// Action is fault.Hold, Delay or Fail. Of one hook they come in this order.
	Action fault.Action
	// Err is what Fail fails with; nil is the action's own error.
	Err error
}

// EveryHook stands for every post-start hook that no other HookFault names.
const EveryHook = "*"

// UnknownHookError says that there is no post-start hook of a name.
type UnknownHookError struct {
	Name  string
	Known []string // sorted
}

// Error implements error.
func (e *UnknownHookError) Error() string {
	return fmt.Sprintf("no post-start hook %q; the hooks of this server are %s", e.Name, strings.Join(e.Known, ", "))
}

// hookActions is the order of the actions of one hook: what says when comes
// before what says what.
var hookActions = []fault.ActionKind{fault.Hold, fault.Delay, fault.Fail}

// add turns the chain's HookFaults into rules.
func (h *hookSet) add(faults []HookFault) error {
	named := map[string]bool{}
	for _, f := range faults {
		if f.Hook != EveryHook && !slices.Contains(h.names, f.Hook) {
			return &UnknownHookError{Name: f.Hook, Known: h.chain.Hooks()}
		}
		named[f.Hook] = true
	}
	faults = slices.Clone(faults)
	slices.SortStableFunc(faults, func(a, b HookFault) int {
		return slices.Index(hookActions, a.Action.Kind) - slices.Index(hookActions, b.Action.Kind)
	})
	for _, f := range faults {
		for _, name := range h.names {
			if name != f.Hook && (f.Hook != EveryHook || named[name]) {
				continue
			}
			if err := h.addTo(name, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// addTo adds the rule of one hook.
func (h *hookSet) addTo(name string, f HookFault) error {
	added, err := h.chain.cfg.Faults.Add(fault.Rule{
		Action:   f.Action,
		Match:    fault.Match{Point: inject.HookPoint(name), Server: h.chain.cfg.Server, Verb: string(trace.PostStart)},
		Optional: true,
	})
	if err != nil {
		return fmt.Errorf("post-start hook %q: %w", name, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.own = append(h.own, added[0])
	switch {
	case f.Action.Kind == fault.Hold:
		h.holds[name] = added[0]
	case f.Err != nil:
		h.failures[added[0].Rule()] = f.Err
	}
	return nil
}

// remove takes the chain's own rules away.
func (h *hookSet) remove() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, entry := range h.own {
		entry.Remove()
	}
}

// failure is what a hook fails with because of a rule, nil for the rule's error.
func (h *hookSet) failure(rule fault.Rule) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.failures[rule]
}

// Hooks returns the names of the post-start hooks, sorted.
func (c *Chain) Hooks() []string { return slices.Clone(c.hooks.names) }

// HeldHooks returns the names of the hooks that are held, sorted. With a
// HookFault they are from the start, with another rule when they come to it.
func (c *Chain) HeldHooks() []string {
	c.hooks.mu.Lock()
	held := map[string]bool{}
	for name := range c.hooks.holds {
		held[name] = true
	}
	c.hooks.mu.Unlock()
	c.heldAt(func(_ *fault.Gate, op fault.Operation) {
		held[strings.TrimPrefix(op.Point, inject.HookPoint(""))] = true
	})
	return slices.Sorted(maps.Keys(held))
}

// heldAt calls f for each post-start hook that waits at a gate.
func (c *Chain) heldAt(f func(*fault.Gate, fault.Operation)) {
	if c.cfg.Faults == nil {
		return
	}
	for _, entry := range c.cfg.Faults.Rules() {
		if entry.Rule().Kind != fault.Hold {
			continue
		}
		for _, op := range entry.Gate().Waiting() {
			if strings.HasPrefix(op.Point, inject.HookPoint("")) && op.Verb == string(trace.PostStart) && op.Server == c.cfg.Server {
				f(entry.Gate(), op)
			}
		}
	}
}

// ReleaseHook lets a held hook run. Releasing one that is not held is an error.
func (c *Chain) ReleaseHook(name string) error {
	if !slices.Contains(c.hooks.names, name) {
		return &UnknownHookError{Name: name, Known: c.Hooks()}
	}
	c.hooks.mu.Lock()
	own := c.hooks.holds[name]
	delete(c.hooks.holds, name)
	c.hooks.mu.Unlock()
	released := own != nil
	if own != nil {
		own.Remove()
	}
	c.heldAt(func(gate *fault.Gate, op fault.Operation) {
		if op.Point == inject.HookPoint(name) && gate.ReleaseOnly(op) {
			released = true
		}
	})
	if !released {
		return fmt.Errorf("post-start hook %q is not held; held are %v", name, c.HeldHooks())
	}
	return nil
}
