package upstream

// Works around policySource (k8s.io/apiserver/pkg/admission/plugin/policy/generic), which looks once a
// second whether policies have changed: one of the last test would be enforced in the next. And at boot
// it looks every 100 ms whether its informers have synced, for as long as which nothing can be written.

import (
	"reflect"
	"strings"
	"sync/atomic"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"
)

func isPolicySource(t reflect.Type) bool {
	return t.PkgPath() == "k8s.io/apiserver/pkg/admission/plugin/policy/generic" &&
		strings.HasPrefix(t.Name(), "policySource[")
}

// forgetPolicies takes the policies and bindings that a source's informers do not have, or have in
// another version, from those that it enforces. It looks for what is new by itself, in its time.
func forgetPolicies(source reflect.Value) {
	policies, bindings := policyInformers(source)
	hooks, at := enforcedPolicies(source)
	before := atomic.LoadPointer(at)
	if before == nil {
		return // the source has not begun
	}
	after := noPolicies(hooks)
	for _, hook := range reflect.NewAt(hooks, before).Elem().Seq2() {
		bound := reflect.New(hook.FieldByName("Bindings").Type()).Elem()
		for _, binding := range hook.FieldByName("Bindings").Seq2() {
			if has(bindings, binding.Interface()) {
				bound = reflect.Append(bound, binding)
			}
		}
		if bound.Len() == 0 || !has(policies, hook.FieldByName("Policy").Interface()) {
			continue
		}
		after.Elem().Set(reflect.Append(after.Elem(), hook))
		after.Elem().Index(after.Elem().Len() - 1).FieldByName("Bindings").Set(bound)
	}
	atomic.StorePointer(at, after.UnsafePointer())
}

// beginPolicies lets a source enforce nothing, where it would look in a moment and find nothing.
func beginPolicies(source reflect.Value) {
	policies, bindings := policyInformers(source)
	if !policies.HasSynced() || !bindings.HasSynced() || len(policies.GetStore().ListKeys()) > 0 {
		return
	}
	hooks, at := enforcedPolicies(source)
	atomic.CompareAndSwapPointer(at, nil, noPolicies(hooks).UnsafePointer())
}

// policyInformers returns the informers of a source's policies and of their bindings.
func policyInformers(source reflect.Value) (policies, bindings cache.SharedIndexInformer) {
	informer := func(name string) cache.SharedIndexInformer {
		return sourceField(source, name).Interface().(cache.SharedIndexInformer)
	}
	return informer("policyInformer"), informer("bindingInformer")
}

// enforcedPolicies returns where a source keeps what it enforces, and the type of that: a slice of
// policies with their bindings.
func enforcedPolicies(source reflect.Value) (hooks reflect.Type, at *unsafe.Pointer) {
	enforced := sourceField(source, "policies") // an atomic.Pointer, whose first field is a [0]*T
	return enforced.Type().Field(0).Type.Elem().Elem(), (*unsafe.Pointer)(enforced.Addr().UnsafePointer())
}

// noPolicies returns a pointer to a slice that is not nil, which would say that the source has not begun.
func noPolicies(hooks reflect.Type) reflect.Value {
	none := reflect.New(hooks)
	none.Elem().Set(reflect.MakeSlice(hooks, 0, 0))
	return none
}

// sourceField returns a field of a source that is not exported.
func sourceField(source reflect.Value, name string) reflect.Value {
	f := source.Elem().FieldByName(name)
	return reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem()
}

// has reports whether an informer has an object in the same version.
func has(informer cache.SharedIndexInformer, object any) bool {
	want, err := meta.Accessor(object)
	if err != nil {
		return false
	}
	found, ok, err := informer.GetStore().GetByKey(cache.MetaObjectToName(want).String())
	if err != nil || !ok {
		return false
	}
	have, err := meta.Accessor(found)
	return err == nil && have.GetResourceVersion() == want.GetResourceVersion()
}
