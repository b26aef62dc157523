package chain

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"unsafe"

	genericapiserver "k8s.io/apiserver/pkg/server"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"
	schedulingrest "k8s.io/kubernetes/pkg/registry/scheduling/rest"

	"snowglobe.test/envtest/chain/inject"
	"snowglobe.test/envtest/fault"
)

// hookSet has the hooks of one chain.
type hookSet struct {
	inject.Hooks
	chain    *Chain
	names    []string // of the post-start hooks, sorted
	stopping []string // of the pre-shutdown hooks, sorted

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
	h := &hookSet{
		Hooks: inject.Hooks{Injector: c.edge, Ending: c.ending, Recorder: c.cfg.Trace, Failed: func(err error) { c.cfg.Crash(err) }},
		chain: c, holds: map[string]*fault.Entry{}, failures: map[fault.Rule]error{},
	}
	h.Failure = h.failure
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
	return h.PostStart(name, upstream)
}

func (h *hookSet) preShutdown(name string, upstream genericapiserver.PreShutdownHookFunc) genericapiserver.PreShutdownHookFunc {
	injected := h.PreShutdown(name, func() error {
		h.chain.renewals.end(errNoRenewal)
		err := upstream()
		h.chain.peerLease.awaitRemoval()
		return err
	})
	return func() error {
		defer h.chain.renewals.end(errNoRenewal) // of a hook that a rule drops or fails as well
		return injected()
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
