package upstream

// Works around the listeners of a shared informer (k8s.io/client-go/tools/cache), which are told of
// an event one by one and say nothing when they have dealt with it. TestWrapHandlers notices when
// upstream changes.

import (
	"reflect"

	"k8s.io/client-go/tools/cache"
)

// WrapHandlers replaces each event handler that the informers of a generated factory have so far.
// None of them may have started.
func WrapHandlers(
	factory any, wrap func(cache.SharedIndexInformer, cache.ResourceEventHandler) cache.ResourceEventHandler,
) error {
	if lasting, ok := factory.(*lastingInformers); ok {
		factory = lasting.SharedInformerFactory
	}
	all, err := unexported[map[reflect.Type]cache.SharedIndexInformer](factory, "informers")
	if err != nil {
		return err
	}
	for _, informer := range *all {
		handlers, err := handlersOf(informer)
		if err != nil {
			return err
		}
		for _, handler := range handlers {
			*handler = wrap(informer, *handler)
		}
	}
	return nil
}

// handlersOf returns where the handlers of an informer are.
func handlersOf(informer cache.SharedIndexInformer) ([]*cache.ResourceEventHandler, error) {
	value := reflect.ValueOf(informer)
	if typed := reflect.Indirect(value).FieldByName("SharedIndexInformer"); typed.IsValid() {
		value = typed.Elem() // in what informers of one type embed, since 1.37
	}
	for _, name := range []string{"processor", "listeners"} {
		value = reflect.Indirect(value)
		if value.Kind() != reflect.Struct || !value.FieldByName(name).IsValid() {
			return nil, errChanged("no %s in %T any more", name, informer)
		}
		value = value.FieldByName(name)
	}
	if value.Kind() != reflect.Map || value.Type().Key().Kind() != reflect.Pointer {
		return nil, errChanged("the listeners of %T are a %s", informer, value.Type())
	}
	var handlers []*cache.ResourceEventHandler
	for _, key := range value.MapKeys() {
		listener := reflect.NewAt(key.Type().Elem(), key.UnsafePointer())
		handler, err := unexported[cache.ResourceEventHandler](listener.Interface(), "handler")
		if err != nil {
			return nil, err
		}
		handlers = append(handlers, handler)
	}
	return handlers, nil
}
