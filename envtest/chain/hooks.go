package chain

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	genericapiserver "k8s.io/apiserver/pkg/server"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"
	schedulingrest "k8s.io/kubernetes/pkg/registry/scheduling/rest"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/trace"
)

// What the operations of hooks are called in rules.
const (
	hookPoint       = "hook/"
	postStartVerb   = string(trace.PostStart)
	preShutdownVerb = string(trace.PreShutdown)
)

// hookSet wraps the hooks of one chain.
type hookSet struct {
	chain    *Chain
	names    []string       // of the post-start hooks, sorted
	stopping []string       // of the pre-shutdown hooks, sorted
	pending  sync.WaitGroup // hooks that have not returned

	mu       sync.Mutex
	own      []*fault.Entry          // of the chain's HookFaults
	holds    map[string]*fault.Entry // those of them that hold, until they are released
	failures map[fault.Rule]error
}

// promptHooks replace the hooks that begin with a pause of a whole second, which
// would be most of a boot in real time.
var promptHooks = map[string]genericapiserver.PostStartHookFunc{
	rbacrest.PostStartHookName:       bootstrapRoles,
	schedulingrest.PostStartHookName: bootstrapPriorityClasses,
}

// wrapHooks puts the rules and the trace around every post-start and
// pre-shutdown hook; it comes after PrepareRun, which adds the last of them. From
// then on all names are known that rules may name.
func (c *Chain) wrapHooks(context.Context) error {
	server := c.servers.aggregator.GenericAPIServer
	h := &hookSet{chain: c, holds: map[string]*fault.Entry{}, failures: map[fault.Rule]error{}}
	c.hooks = h
	post := reflect.ValueOf(server.PostStartHooks())
	h.names = mapKeys(post)
	for _, name := range h.names {
		replaceHook(post, name, func(hook genericapiserver.PostStartHookFunc) genericapiserver.PostStartHookFunc {
			return h.postStart(name, hook)
		})
	}
	pre := reflect.ValueOf(server.PreShutdownHooks())
	h.stopping = mapKeys(pre)
	for _, name := range h.stopping {
		replaceHook(pre, name, func(hook genericapiserver.PreShutdownHookFunc) genericapiserver.PreShutdownHookFunc {
			return h.preShutdown(name, hook)
		})
	}
	if err := h.add(c.cfg.Hooks); err != nil {
		h.remove()
		return &unknownNamesError{err}
	}
	return c.knowNames()
}

func (h *hookSet) postStart(name string, upstream genericapiserver.PostStartHookFunc) genericapiserver.PostStartHookFunc {
	if prompt, ok := promptHooks[name]; ok && !h.chain.cfg.UpstreamPauses {
		upstream = prompt
	}
	if name == autoregistrationHook {
		upstream = h.chain.autoregistration.wrap(upstream, h.chain.crdsEnabled())
	}
	record := h.recorder(trace.PostStart, name)
	h.pending.Add(1)
	return func(hook genericapiserver.PostStartHookContext) error {
		returned := h.pending.Done
		defer func() { returned() }()
		decision, failure := h.ask(hook, h.chain.edge, postStartVerb, name, record)
		switch decision.Kind {
		case fault.Fail:
			failure = h.failure(decision)
		case fault.Drop:
			returned = func() {}
			go h.makeUp(upstream, hook)
			return nil
		}
		record(trace.Start, nil)
		err := failure
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
		if failure != nil {
			_ = upstream(hook) // others wait for what it does, and must end too
		}
		runtime.Goexit()
		return nil
	}
}

// makeUp runs a hook that was dropped when the server stops: others wait for
// what it does, and must end too.
func (h *hookSet) makeUp(upstream genericapiserver.PostStartHookFunc, hook genericapiserver.PostStartHookContext) {
	defer h.pending.Done()
	_ = h.chain.edge.Lost(hook) // until the server stops
	_ = upstream(hook)          // whether it fails is no news any more
}

// ask asks what becomes of a hook. The trace says of the hook when it is held.
func (h *hookSet) ask(ctx context.Context, edge *fault.Injector, verb, name string, record func(trace.Phase, error)) (fault.Decision, error) {
	ctx = fault.WithNotice(ctx, func(phase trace.Phase, rule fault.Rule) {
		if rule.Kind == fault.Hold {
			record(phase, nil)
		}
	})
	return edge.At(ctx, func() fault.Operation { return fault.Operation{Point: hookPoint + name, Verb: verb} })
}

func (h *hookSet) recorder(kind trace.HookKind, name string) func(trace.Phase, error) {
	return func(phase trace.Phase, err error) {
		h.chain.cfg.Trace.Record(trace.Hook{Kind: kind, Name: name, Phase: phase, Err: err})
	}
}

func (h *hookSet) preShutdown(name string, upstream genericapiserver.PreShutdownHookFunc) genericapiserver.PreShutdownHookFunc {
	record := h.recorder(trace.PreShutdown, name)
	return func() error {
		decision, err := h.ask(context.Background(), h.chain.ending, preShutdownVerb, name, record)
		h.chain.renewals.end(errNoRenewal)
		if decision.Kind == fault.Drop {
			return nil
		}
		record(trace.Start, nil)
		if err == nil && decision.Kind == fault.Fail {
			err = decision.Err()
		}
		if err == nil {
			err = upstream()
			h.chain.peerLease.awaitRemoval()
		}
		record(trace.End, err)
		return err
	}
}

// errShape says that upstream's hook maps do not look as this file expects.
var errShape = errors.New("upstream changed: hook maps are not map[string]struct{hook func ...} any more")

// mapKeys returns the names of a server's hooks, sorted.
func mapKeys(hooks reflect.Value) []string {
	if hooks.Kind() != reflect.Map || hooks.Type().Key().Kind() != reflect.String {
		panic(errShape)
	}
	keys := make([]string, 0, hooks.Len())
	for _, key := range hooks.MapKeys() {
		keys = append(keys, key.String())
	}
	slices.Sort(keys)
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
