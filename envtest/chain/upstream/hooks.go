package upstream

// Works around GenericAPIServer.PostStartHooks and PreShutdownHooks
// (k8s.io/apiserver/pkg/server, hooks.go), which return the live maps of a server
// with values of an unexported type, and around server.Config.PostStartHooks,
// whose values keep the function to themselves. TestWrapHooks notices when
// upstream changes.

import (
	"reflect"
	"slices"
	"unsafe"

	genericapiserver "k8s.io/apiserver/pkg/server"
)

// WrapPostStartHooks replaces each post-start hook of a server, and of those it
// delegates to, by what wrap returns, and returns their names, in order.
func WrapPostStartHooks(server *genericapiserver.GenericAPIServer, wrap func(name string, hook genericapiserver.PostStartHookFunc) genericapiserver.PostStartHookFunc) ([]string, error) {
	return wrapHooks(reflect.ValueOf(server.PostStartHooks()), wrap)
}

// WrapPreShutdownHooks is WrapPostStartHooks for the pre-shutdown hooks.
func WrapPreShutdownHooks(server *genericapiserver.GenericAPIServer, wrap func(name string, hook genericapiserver.PreShutdownHookFunc) genericapiserver.PreShutdownHookFunc) ([]string, error) {
	return wrapHooks(reflect.ValueOf(server.PreShutdownHooks()), wrap)
}

// PostStartHooks returns a server's post-start hooks by name or, if it is nil,
// those that its configuration has for it.
func PostStartHooks(server *genericapiserver.GenericAPIServer, config *genericapiserver.Config) (map[string]genericapiserver.PostStartHookFunc, error) {
	hooks := reflect.ValueOf(config.PostStartHooks)
	if server != nil {
		hooks = reflect.ValueOf(server.PostStartHooks())
	}
	found := map[string]genericapiserver.PostStartHookFunc{}
	_, err := wrapHooks(hooks, func(name string, hook genericapiserver.PostStartHookFunc) genericapiserver.PostStartHookFunc {
		found[name] = hook
		return hook
	})
	return found, err
}

// wrapHooks wraps the functions in a map of hooks, in the order of their names.
func wrapHooks[F any](hooks reflect.Value, wrap func(string, F) F) ([]string, error) {
	shape := hooks.Type()
	if shape.Kind() != reflect.Map || shape.Key().Kind() != reflect.String || shape.Elem().Kind() != reflect.Struct {
		return nil, errChanged("hooks are a %s", shape)
	}
	if field, ok := shape.Elem().FieldByName("hook"); !ok || field.Type != reflect.TypeFor[F]() {
		return nil, errChanged("%s has no field hook that is a %s", shape.Elem(), reflect.TypeFor[F]())
	}
	names := make([]string, 0, hooks.Len())
	for _, key := range hooks.MapKeys() {
		names = append(names, key.String())
	}
	slices.Sort(names)
	for _, name := range names {
		key := reflect.ValueOf(name)
		entry := reflect.New(shape.Elem()).Elem() // what is in a map has no address
		entry.Set(hooks.MapIndex(key))
		function := (*F)(unsafe.Pointer(entry.FieldByName("hook").UnsafeAddr()))
		*function = wrap(name, *function)
		hooks.SetMapIndex(key, entry)
	}
	return names, nil
}
