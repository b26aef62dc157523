package chain

import (
	"fmt"
	"reflect"
	"strings"
	"unsafe"

	genericapiserver "k8s.io/apiserver/pkg/server"
)

// signal is upstream's unexported lifecycle signal.
type signal interface {
	Name() string
	Signal()
	Signaled() <-chan struct{}
}

func signaled(s signal) bool {
	select {
	case <-s.Signaled():
		return true
	default:
		return false
	}
}

// FireSignal fires a lifecycle signal before its time, as a bug would. The
// signals are upstream's: MuxAndDiscoveryComplete, HasBeenReady, ...
func (c *Chain) FireSignal(name string) error {
	var names []string
	for _, s := range c.signals {
		if s.Name() == name {
			s.Signal()
			return nil
		}
		names = append(names, s.Name())
	}
	return fmt.Errorf("no lifecycle signal %q; the signals are %s", name, strings.Join(names, ", "))
}

// lifecycleSignals reads the unexported lifecycle signals of a configuration,
// in upstream's order. It panics with a plain message when upstream's shape has
// changed, which TestLifecycleSignals finds first.
func lifecycleSignals(config *genericapiserver.Config) []signal {
	field := reflect.ValueOf(config).Elem().FieldByName("lifecycleSignals")
	if !field.IsValid() || field.Kind() != reflect.Struct {
		panic("upstream changed: server.Config has no struct lifecycleSignals any more")
	}
	signals := make([]signal, 0, field.NumField())
	for i := range field.NumField() {
		value := field.Field(i)
		s, ok := reflect.NewAt(value.Type(), unsafe.Pointer(value.UnsafeAddr())).Elem().Interface().(signal)
		if !ok {
			panic(fmt.Sprintf("upstream changed: lifecycle signal %s is a %s", field.Type().Field(i).Name, value.Type()))
		}
		signals = append(signals, s)
	}
	return signals
}
