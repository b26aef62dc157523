package objectcmp

import (
	"reflect"
	"strings"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var (
	typeMeta         = reflect.TypeFor[metav1.TypeMeta]()
	objectMeta       = reflect.TypeFor[metav1.ObjectMeta]()
	unstructuredOne  = reflect.TypeFor[unstructured.Unstructured]()
	unstructuredList = reflect.TypeFor[unstructured.UnstructuredList]()
)

// element stands for any index of a slice in a path.
const element = "*"

// objectPath returns the path of a value in JSON from the outermost object on, or from the
// item of a list; none outside of objects. Metadata without an object begins a path, too.
func objectPath(p cmp.Path) []string {
	var path []string
	inside := false
	for i, step := range p {
		if inside {
			if name, ok := key(p, i); ok {
				path = append(path, name)
			}
			continue
		}
		switch t := step.Type(); {
		case isObject(t):
			inside = true
		case t == objectMeta:
			inside, path = true, []string{"metadata"}
		}
	}
	if len(path) > 2 && path[0] == "items" && path[1] == element {
		path = path[2:]
	}
	return path
}

// key returns what a step adds to a path in JSON; nothing if there is no step in JSON.
func key(p cmp.Path, i int) (string, bool) {
	switch step := p[i].(type) {
	case cmp.MapIndex:
		return step.Key().String(), true
	case cmp.SliceIndex:
		return element, true
	case cmp.StructField:
		parent := p.Index(i - 1).Type()
		if parent == unstructuredOne || parent == unstructuredList && step.Name() == "Object" {
			return "", false
		}
		field := parent.Field(step.Index())
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" {
			return field.Name, !field.Anonymous
		}
		return name, true
	}
	return "", false
}

// isObject reports whether a type is that of an API object or of a list.
func isObject(t reflect.Type) bool {
	if t == unstructuredOne || t == unstructuredList {
		return true
	}
	if t.Kind() != reflect.Struct || !embeds(t, typeMeta) {
		return false
	}
	_, isList := t.FieldByName("Items")
	return isList || embeds(t, objectMeta)
}

func embeds(t, embedded reflect.Type) bool {
	field, ok := t.FieldByName(embedded.Name())
	return ok && field.Type == embedded
}
