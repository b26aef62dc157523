package chain

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	genericapiserver "k8s.io/apiserver/pkg/server"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"
	schedulingrest "k8s.io/kubernetes/pkg/registry/scheduling/rest"

	"snowglobe.test/envtest/trace"
)

// HookRule says what to do to a post-start hook. The zero value lets it run.
// Hold comes before Delay, Delay before Fail.
type HookRule struct {
	// Hold keeps the hook from running until ReleaseHook.
	Hold bool
	// Delay waits this long, in the clock the chain lives in.
	Delay time.Duration
	// Fail makes the hook return this error instead of running, which ends a
	// kube-apiserver process and so is a crash of the chain.
	Fail error
}

// EveryHook stands for every post-start hook that has no rule of its own.
const EveryHook = "*"

// hookSet wraps the hooks of one chain.
type hookSet struct {
	chain *Chain
	mu    sync.Mutex
	gates map[string]chan struct{} // of held hooks, closed on release
	names []string
	// finishing is closed when the server stops: holds and delays end, so that
	// its boot can.
	finishing chan struct{}
	pending   sync.WaitGroup // hooks that have not returned
}

// promptHooks replace the hooks that begin with a pause of a whole second, which
// would be most of a boot in real time.
var promptHooks = map[string]genericapiserver.PostStartHookFunc{
	rbacrest.PostStartHookName:       bootstrapRoles,
	schedulingrest.PostStartHookName: bootstrapPriorityClasses,
}

// wrapHooks puts the rules and the trace around every post-start and
// pre-shutdown hook; it comes after PrepareRun, which adds the last of them.
func (c *Chain) wrapHooks(context.Context) error {
	server := c.servers.aggregator.GenericAPIServer
	c.hooks = &hookSet{chain: c, gates: map[string]chan struct{}{}, finishing: make(chan struct{})}
	post := reflect.ValueOf(server.PostStartHooks())
	for _, name := range mapKeys(post) {
		replaceHook(post, name, func(hook genericapiserver.PostStartHookFunc) genericapiserver.PostStartHookFunc {
			return c.hooks.postStart(name, hook)
		})
		c.hooks.names = append(c.hooks.names, name)
	}
	slices.Sort(c.hooks.names)
	pre := reflect.ValueOf(server.PreShutdownHooks())
	for _, name := range mapKeys(pre) {
		replaceHook(pre, name, func(hook genericapiserver.PreShutdownHookFunc) genericapiserver.PreShutdownHookFunc {
			return c.hooks.preShutdown(name, hook)
		})
	}
	for _, name := range slices.Sorted(maps.Keys(c.cfg.Hooks)) {
		if name != EveryHook && !slices.Contains(c.hooks.names, name) {
			return &UnknownHookError{Name: name, Known: c.Hooks()}
		}
	}
	for _, name := range c.hooks.names {
		if c.hooks.rule(name).Hold {
			c.hooks.gates[name] = make(chan struct{})
		}
	}
	return nil
}

// UnknownHookError says that there is no post-start hook of a name.
type UnknownHookError struct {
	Name  string
	Known []string // sorted
}

// Error implements error.
func (e *UnknownHookError) Error() string {
	return fmt.Sprintf("no post-start hook %q; the hooks of this server are %s", e.Name, strings.Join(e.Known, ", "))
}

// rule returns what is to be done to a hook: the rule of its own name, else the
// one of every hook.
func (h *hookSet) rule(name string) HookRule {
	if rule, ok := h.chain.cfg.Hooks[name]; ok {
		return rule
	}
	return h.chain.cfg.Hooks[EveryHook]
}

// Hooks returns the names of the post-start hooks, sorted.
func (c *Chain) Hooks() []string { return slices.Clone(c.hooks.names) }

// HeldHooks returns the names of the hooks that are held, sorted.
func (c *Chain) HeldHooks() []string {
	c.hooks.mu.Lock()
	defer c.hooks.mu.Unlock()
	return slices.Sorted(maps.Keys(c.hooks.gates))
}

// ReleaseHook lets a held hook run. Releasing one that is not held is an error.
func (c *Chain) ReleaseHook(name string) error {
	c.hooks.mu.Lock()
	defer c.hooks.mu.Unlock()
	gate := c.hooks.gates[name]
	if !slices.Contains(c.hooks.names, name) {
		return &UnknownHookError{Name: name, Known: c.Hooks()}
	}
	if gate == nil {
		return fmt.Errorf("post-start hook %q is not held; held are %v", name, slices.Sorted(maps.Keys(c.hooks.gates)))
	}
	delete(c.hooks.gates, name)
	close(gate)
	return nil
}

func (h *hookSet) postStart(name string, upstream genericapiserver.PostStartHookFunc) genericapiserver.PostStartHookFunc {
	if prompt, ok := promptHooks[name]; ok && !h.chain.cfg.UpstreamPauses {
		upstream = prompt
	}
	if name == autoregistrationHook {
		upstream = h.chain.autoregistration.wrap(upstream, h.chain.crdsEnabled())
	}
	rule := h.rule(name)
	record := func(phase trace.Phase, err error) {
		h.chain.cfg.Trace.Record(trace.Hook{Kind: trace.PostStart, Name: name, Phase: phase, Err: err})
	}
	h.pending.Add(1)
	return func(hook genericapiserver.PostStartHookContext) error {
		defer h.pending.Done()
		h.delay(name, rule, record)
		record(trace.Start, nil)
		err := rule.Fail
		if err == nil {
			err = upstream(hook)
		}
		record(trace.End, err)
		if err == nil {
			return nil
		}
		// Upstream would end the process here, by klog.Fatalf. The chain ends
		// instead, and the hook's readiness check stays red as it would have.
		h.chain.cfg.Crash(fmt.Errorf("post-start hook %q failed: %w", name, err))
		if rule.Fail != nil {
			_ = upstream(hook) // others wait for what it does, and must end too
		}
		runtime.Goexit()
		return nil
	}
}

// delay applies hold and delay, until the server stops.
func (h *hookSet) delay(name string, rule HookRule, record func(trace.Phase, error)) {
	h.mu.Lock()
	gate := h.gates[name]
	h.mu.Unlock()
	if gate != nil {
		record(trace.Held, nil)
		select {
		case <-gate:
		case <-h.finishing:
		}
		record(trace.Released, nil)
	}
	if rule.Delay > 0 {
		select {
		case <-time.After(rule.Delay):
		case <-h.finishing:
		}
	}
}

func (h *hookSet) preShutdown(name string, upstream genericapiserver.PreShutdownHookFunc) genericapiserver.PreShutdownHookFunc {
	record := func(phase trace.Phase, err error) {
		h.chain.cfg.Trace.Record(trace.Hook{Kind: trace.PreShutdown, Name: name, Phase: phase, Err: err})
	}
	return func() error {
		record(trace.Start, nil)
		h.chain.renewals.end(errNoRenewal)
		err := upstream()
		record(trace.End, err)
		return err
	}
}

// errShape says that upstream's hook maps do not look as this file expects.
var errShape = errors.New("upstream changed: hook maps are not map[string]struct{hook func ...} any more")

func mapKeys(hooks reflect.Value) []string {
	if hooks.Kind() != reflect.Map || hooks.Type().Key().Kind() != reflect.String {
		panic(errShape)
	}
	keys := make([]string, 0, hooks.Len())
	for _, key := range hooks.MapKeys() {
		keys = append(keys, key.String())
	}
	return keys
}

// replaceHook wraps the function of one entry in a server's live hook map, whose
// value type upstream does not export.
func replaceHook[F any](hooks reflect.Value, name string, wrap func(F) F) {
	key := reflect.ValueOf(name)
	entry := reflect.New(hooks.Type().Elem()).Elem()
	entry.Set(hooks.MapIndex(key))
	if entry.Kind() != reflect.Struct {
		panic(errShape)
	}
	field := entry.FieldByName("hook")
	if !field.IsValid() || field.Type() != reflect.TypeFor[F]() {
		panic(errShape)
	}
	function := (*F)(unsafe.Pointer(field.UnsafeAddr()))
	*function = wrap(*function)
	hooks.SetMapIndex(key, entry)
}
