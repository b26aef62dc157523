package chain

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	genericapiserver "k8s.io/apiserver/pkg/server"

	"snowglobe.test/envtest/chain/inject"
)

// signal is upstream's unexported lifecycle signal.
type signal = inject.LifecycleSignal

func signaled(s signal) bool {
	select {
	case <-s.Signaled():
		return true
	default:
		return false
	}
}

// bootSignals are the lifecycle signals of a boot; the others are of a
// termination.
var bootSignals = []string{hasBeenReady, muxAndDiscoveryComplete}

// injectSignals puts an inject.Signal in the place of each of a configuration's
// lifecycle signals. It comes before the servers copy them.
func (c *Chain) injectSignals(config *genericapiserver.Config) {
	for _, field := range lifecycleSignals(config) {
		s := field.Interface().(signal)
		c.signals = append(c.signals, s)
		injector := c.ending
		if slices.Contains(bootSignals, s.Name()) {
			injector = c.edge
		}
		injected := inject.NewSignal(s, injector, &c.firing)
		if s.Name() == hasBeenReady {
			c.readySignal = injected.Done()
		}
		field.Set(reflect.ValueOf(injected))
	}
}

// ReadySignal is closed when HasBeenReady, of the first green /readyz, has fired
// or is dropped, and whatever rules do to it has been done.
func (c *Chain) ReadySignal() <-chan struct{} { return c.readySignal }

func (c *Chain) signalNames() []string {
	names := make([]string, len(c.signals))
	for i, s := range c.signals {
		names[i] = s.Name()
	}
	return names
}

// FireSignal fires a lifecycle signal before its time, as a bug would. The
// signals are upstream's: MuxAndDiscoveryComplete, HasBeenReady, ...
func (c *Chain) FireSignal(name string) error {
	for _, s := range c.signals {
		if s.Name() == name {
			s.Signal()
			return nil
		}
	}
	return fmt.Errorf("no lifecycle signal %q; the signals are %s", name, strings.Join(c.signalNames(), ", "))
}

// lifecycleSignals reaches for the unexported lifecycle signals of a
// configuration, in upstream's order. It panics with a plain message when
// upstream's shape has changed, which TestLifecycleSignals finds first.
func lifecycleSignals(config *genericapiserver.Config) []reflect.Value {
	field := reflect.ValueOf(config).Elem().FieldByName("lifecycleSignals")
	if !field.IsValid() || field.Kind() != reflect.Struct {
		panic("upstream changed: server.Config has no struct lifecycleSignals any more")
	}
	signals := make([]reflect.Value, 0, field.NumField())
	for i := range field.NumField() {
		value := field.Field(i)
		value = reflect.NewAt(value.Type(), unsafe.Pointer(value.UnsafeAddr())).Elem()
		if _, ok := value.Interface().(signal); !ok || !reflect.TypeFor[*inject.Signal]().AssignableTo(value.Type()) {
			panic(fmt.Sprintf("upstream changed: lifecycle signal %s is a %s", field.Type().Field(i).Name, value.Type()))
		}
		signals = append(signals, value)
	}
	return signals
}
