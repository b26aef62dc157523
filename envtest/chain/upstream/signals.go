package upstream

// Works around server.Config.lifecycleSignals (k8s.io/apiserver/pkg/server,
// lifecycle_signals.go), a struct of unexported interfaces in an unexported
// field. TestLifecycleSignals notices when upstream changes.

import (
	"fmt"
	"reflect"
	"unsafe"

	genericapiserver "k8s.io/apiserver/pkg/server"
)

// The names of upstream's lifecycle signals that are waited for here.
const (
	// HasBeenReady is the signal of the first green /readyz.
	HasBeenReady = "HasBeenReady"
	// MuxAndDiscoveryComplete comes before unknown paths get 404 instead of 503.
	MuxAndDiscoveryComplete = "MuxAndDiscoveryComplete"
	// NotAcceptingNewRequest is the signal after which upstream drains.
	NotAcceptingNewRequest = "NotAcceptingNewRequest"
	// InFlightRequestsDrained comes when only idle connections are left.
	InFlightRequestsDrained = "InFlightRequestsDrained"
	// HTTPServerStoppedListening comes when the port is closed.
	HTTPServerStoppedListening = "HTTPServerStoppedListening"
)

// LifecycleSignal is upstream's lifecycleSignal.
type LifecycleSignal interface {
	Name() string
	Signal()
	Signaled() <-chan struct{}
}

// Fired reports whether a signal has been signaled.
func Fired(s LifecycleSignal) bool {
	select {
	case <-s.Signaled():
		return true
	default:
		return false
	}
}

// ReplaceSignals replaces each lifecycle signal of a configuration, in upstream's
// order, before its servers are made, which copy the signals.
func ReplaceSignals(config *genericapiserver.Config, replace func(LifecycleSignal) LifecycleSignal) error {
	fields, err := signalFields(config)
	if err != nil {
		return err
	}
	for _, field := range fields {
		set(field, replace(field.Interface().(LifecycleSignal)))
	}
	return nil
}

func set(field reflect.Value, s LifecycleSignal) { field.Set(reflect.ValueOf(s)) }

// signalFields returns the lifecycle signals of a configuration, settable.
func signalFields(config *genericapiserver.Config) ([]reflect.Value, error) {
	all := reflect.ValueOf(config).Elem().FieldByName("lifecycleSignals")
	if !all.IsValid() || all.Kind() != reflect.Struct {
		return nil, errChanged("server.Config has no struct lifecycleSignals any more")
	}
	fields := make([]reflect.Value, 0, all.NumField())
	for i := range all.NumField() {
		field := all.Field(i)
		field = reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem()
		_, ours := field.Interface().(LifecycleSignal)
		if !ours || field.Kind() != reflect.Interface || !reflect.TypeFor[LifecycleSignal]().Implements(field.Type()) {
			return nil, errChanged("lifecycle signal %s is a %s", all.Type().Field(i).Name, field.Type())
		}
		fields = append(fields, field)
	}
	return fields, nil
}

// errChanged says that upstream does not look as a reach expects.
func errChanged(format string, args ...any) error {
	return fmt.Errorf("upstream changed: "+format, args...)
}
