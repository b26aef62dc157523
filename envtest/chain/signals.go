package chain

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unsafe"

	genericapiserver "k8s.io/apiserver/pkg/server"

	"snowglobe.test/envtest/fault"
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

// bootSignals are the lifecycle signals of a boot; the others are of a
// termination.
var bootSignals = []string{hasBeenReady, muxAndDiscoveryComplete}

// bentSignal asks before upstream's signal fires. Whoever fires it never waits.
type bentSignal struct {
	signal
	edge   *fault.Injector
	once   sync.Once
	firing *sync.WaitGroup // who waits to fire
	done   chan struct{}   // closed when it has fired or is dropped
}

// Signal implements upstream's lifecycleSignal.
func (s *bentSignal) Signal() {
	if !s.edge.Active() {
		s.signal.Signal()
		s.once.Do(func() { close(s.done) })
		return
	}
	s.once.Do(func() { s.firing.Go(s.fire) })
}

// fire fires the signal unless it is dropped. A server that has crashed must
// still come to its end.
func (s *bentSignal) fire() {
	defer close(s.done)
	d, _ := s.edge.At(context.Background(), func() fault.Operation { return fault.Operation{Point: "signal/" + s.Name()} })
	if d.Kind != fault.Drop {
		s.signal.Signal()
	}
}

// bendSignals puts a bentSignal in the place of each of a configuration's
// lifecycle signals. It comes before the servers copy them.
func (c *Chain) bendSignals(config *genericapiserver.Config) {
	for _, field := range lifecycleSignals(config) {
		s := field.Interface().(signal)
		c.signals = append(c.signals, s)
		edge := c.ending
		if slices.Contains(bootSignals, s.Name()) {
			edge = c.edge
		}
		bent := &bentSignal{signal: s, edge: edge, firing: &c.firing, done: make(chan struct{})}
		if s.Name() == hasBeenReady {
			c.readySignal = bent.done
		}
		field.Set(reflect.ValueOf(bent))
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
		if _, ok := value.Interface().(signal); !ok || !reflect.TypeFor[*bentSignal]().AssignableTo(value.Type()) {
			panic(fmt.Sprintf("upstream changed: lifecycle signal %s is a %s", field.Type().Field(i).Name, value.Type()))
		}
		signals = append(signals, value)
	}
	return signals
}
