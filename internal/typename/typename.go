// Package typename finds types that a program has in it by their names, for what packages keep to
// themselves.
package typename

import (
	"reflect"
	"unsafe"
)

// Find returns the types of that name that the program has pointers to, such as "runtime.hchan". Packages
// of different paths may have the same name.
func Find(name string) []reflect.Type {
	var found []reflect.Type
	for _, pointer := range typesByString("*" + name) {
		// An any is laid out so by the runtime.
		nothing := struct{ dynamicType, value unsafe.Pointer }{dynamicType: pointer}
		found = append(found, reflect.TypeOf(*(*any)(unsafe.Pointer(&nothing))).Elem())
	}
	return found
}

// typesByString returns the pointer types of that name. The reflect package promises to
// keep it for those who link to it so.
//
//go:linkname typesByString reflect.typesByString
func typesByString(name string) []unsafe.Pointer
