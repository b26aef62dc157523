package upstream

// Works around policySource (k8s.io/apiserver/pkg/admission/plugin/policy/generic), which looks once a
// second whether policies have changed: one of the last test would be enforced in the next.

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
	field := func(name string) reflect.Value {
		f := source.Elem().FieldByName(name)
		return reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem() // it is not exported
	}
	policies := field("policyInformer").Interface().(cache.SharedIndexInformer)
	bindings := field("bindingInformer").Interface().(cache.SharedIndexInformer)
	enforced := field("policies")                            // an atomic.Pointer, whose first field is a [0]*T
	hooks := enforced.Type().Field(0).Type.Elem().Elem()     // a slice of policies with their bindings
	at := (*unsafe.Pointer)(enforced.Addr().UnsafePointer()) // its only other field
	before := atomic.LoadPointer(at)
	if before == nil {
		return // the source has not begun
	}
	after := reflect.New(hooks)
	after.Elem().Set(reflect.MakeSlice(hooks, 0, 0)) // not nil, which says that the source has not begun
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
