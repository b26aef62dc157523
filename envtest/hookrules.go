package envtest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/trace"
	"snowglobe.test/internal/nearest"
)

// hookRule is what an option does to a post-start hook: a rule about each server,
// which is there while the server runs.
type hookRule struct {
	hook   string // a name, or everyHook
	action fault.Action
	err    error // what Fail fails with
}

// everyHook stands for every post-start hook that no other option names.
const everyHook = "*"

// HoldAllHooks holds every post-start hook that no other option names.
func HoldAllHooks() Option { return HoldHook(everyHook) }

// HoldHook keeps a post-start hook from running until ControlPlane.ReleaseHook.
// Start then returns as soon as the server accepts requests; WaitReady waits for
// the rest.
func HoldHook(names ...string) Option {
	return func(c *config) {
		for _, name := range names {
			c.hook(hookRule{hook: name, action: fault.Action{Kind: fault.Hold}})
		}
	}
}

// DelayHook lets a post-start hook run only after some time.
func DelayHook(name string, delay time.Duration) Option {
	return func(c *config) {
		if delay <= 0 {
			c.refuse("delay of post-start hook %q is %s; it must be positive", name, delay)
		}
		c.hook(hookRule{hook: name, action: fault.Action{Kind: fault.Delay, By: delay}})
	}
}

// FailHook makes a post-start hook fail instead of running, which in a
// kube-apiserver ends the process: Start returns an error that names the hook,
// or, if Start has returned already, ControlPlane.Err does.
func FailHook(name string, err error) Option {
	return func(c *config) {
		if err == nil {
			err = errors.New("failed on purpose")
		}
		c.hook(hookRule{name, fault.Action{Kind: fault.Fail, With: fault.PlainError}, err})
	}
}

// hook adds a rule; of two of a kind about one hook the later one counts.
func (c *config) hook(rule hookRule) {
	c.hooks = slices.DeleteFunc(c.hooks, func(r hookRule) bool { return r.hook == rule.hook && r.action.Kind == rule.action.Kind })
	c.hooks = append(c.hooks, rule)
}

// hookRules are the rules that options have added about the hooks of one run of a
// server.
type hookRules struct {
	mu      sync.Mutex
	entries []*fault.Entry
	holds   map[string]*fault.Entry // those that hold, until they are released
}

// hookActions is the order of the actions of one hook: what says when comes
// before what says what.
var hookActions = []fault.ActionKind{fault.Hold, fault.Delay, fault.Fail}

// add adds the rules of options about a server that has these hooks.
func (h *hookRules) add(set *fault.Set, server string, hooks []string, options []hookRule) error {
	named := map[string]bool{}
	for _, o := range options {
		if o.hook != everyHook && !slices.Contains(hooks, o.hook) {
			return unknownHook(o.hook, hooks)
		}
		named[o.hook] = true
	}
	options = slices.Clone(options)
	slices.SortStableFunc(options, func(a, b hookRule) int {
		return slices.Index(hookActions, a.action.Kind) - slices.Index(hookActions, b.action.Kind)
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.holds = map[string]*fault.Entry{}
	for _, o := range options {
		for _, name := range hooks {
			if name != o.hook && (o.hook != everyHook || named[name]) {
				continue
			}
			added, err := set.Add(fault.Rule{
				Action: o.action, Match: fault.Match{Point: hookPoint + name, Server: server, Verb: string(trace.PostStart)}, Optional: true, Err: o.err,
			})
			if err != nil {
				return fmt.Errorf("post-start hook %q: %w", name, err)
			}
			h.entries = append(h.entries, added[0])
			if o.action.Kind == fault.Hold {
				h.holds[name] = added[0]
			}
		}
	}
	return nil
}

const hookPoint = "hook/"

func unknownHook(name string, known []string) error {
	return fmt.Errorf("no post-start hook %q%s; the hooks of this server are %s", name, nearest.DidYouMean(name, known), strings.Join(known, ", "))
}

// remove takes the rules away.
func (h *hookRules) remove() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, entry := range h.entries {
		entry.Remove()
	}
}

// release removes the hold of a hook, and reports whether there was one.
func (h *hookRules) release(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	entry, ok := h.holds[name]
	if ok {
		entry.Remove()
		delete(h.holds, name)
	}
	return ok
}

// held returns the names of the hooks that options hold.
func (h *hookRules) held() map[string]bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	held := map[string]bool{}
	for name := range h.holds {
		held[name] = true
	}
	return held
}

// HeldHooks returns the names of the post-start hooks that are held, sorted: those
// of HoldHook from the start, those of other rules when they come to them.
func (s *Server) HeldHooks() []string {
	l := s.life.Load()
	held := l.hooks.held()
	l.waitingHooks(func(_ *fault.Gate, op fault.Operation) { held[strings.TrimPrefix(op.Point, hookPoint)] = true })
	return slices.Sorted(maps.Keys(held))
}

// ReleaseHook lets a held post-start hook run. Releasing one that is not held is an
// error that names those that are.
func (s *Server) ReleaseHook(name string) error {
	if !slices.Contains(s.Hooks(), name) {
		return unknownHook(name, s.Hooks())
	}
	l := s.life.Load()
	released := l.hooks.release(name)
	l.waitingHooks(func(gate *fault.Gate, op fault.Operation) {
		released = op.Point == hookPoint+name && gate.ReleaseOnly(op) || released
	})
	if !released {
		return fmt.Errorf("post-start hook %q is not held; held are %v", name, s.HeldHooks())
	}
	return nil
}

// waitingHooks calls f for each post-start hook of the server that waits because a
// rule holds it.
func (l *life) waitingHooks(f func(*fault.Gate, fault.Operation)) {
	for _, entry := range l.server.cp.faults.Rules() {
		if entry.Rule().Kind != fault.Hold {
			continue
		}
		for _, op := range entry.Gate().Waiting() {
			if strings.HasPrefix(op.Point, hookPoint) && op.Verb == string(trace.PostStart) && op.Server == l.server.name {
				f(entry.Gate(), op)
			}
		}
	}
}
