package matchers

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/onsi/gomega/format"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// object is what client.Object is.
type object interface {
	metav1.Object
	runtime.Object
}

// objectMatcher matches an object by something that it has.
type objectMatcher struct {
	expected string // for example "have finalizer example.test/a"
	match    func(object) (bool, error)
	found    func(object) string // what the object has, for example "no finalizers"
}

func (m objectMatcher) Match(actual any) (bool, error) {
	o, err := as[object](actual)
	if err != nil {
		return false, fmt.Errorf("%s: %w", m.expected, err)
	}
	matched, err := m.match(o)
	if err != nil {
		return false, fmt.Errorf("%s: %w", m.expected, err)
	}
	return matched, nil
}

func (m objectMatcher) FailureMessage(actual any) string {
	return m.message(actual, "to")
}

func (m objectMatcher) NegatedFailureMessage(actual any) string {
	return m.message(actual, "not to")
}

func (m objectMatcher) message(actual any, to string) string {
	o, err := as[object](actual)
	if err != nil { // Match has returned it
		return err.Error()
	}
	return fmt.Sprintf("Expected %s %s %s.\nIt has %s", describe(o), to, m.expected, m.found(o))
}

// as returns an object as an interface that objects implement. Types implement it with
// their pointers, so a value is copied.
func as[T any](actual any) (T, error) {
	var none T
	v := reflect.ValueOf(actual)
	if v.Kind() == reflect.Struct {
		pointer := reflect.New(v.Type())
		pointer.Elem().Set(v)
		v = pointer
	}
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		if o, ok := v.Interface().(T); ok {
			return o, nil
		}
	}
	return none, fmt.Errorf("want a Kubernetes object, got\n%s", format.Object(actual, 1))
}

// describe names an object in a message, for example "Pod default/web".
func describe(o any) string {
	words := []string{reflect.Indirect(reflect.ValueOf(o)).Type().Name()}
	if r, ok := o.(runtime.Object); ok && r.GetObjectKind().GroupVersionKind().Kind != "" {
		words[0] = r.GetObjectKind().GroupVersionKind().Kind
	}
	if m, err := meta.Accessor(o); err == nil && m.GetName() != "" {
		words = append(words, strings.TrimPrefix(m.GetNamespace()+"/"+m.GetName(), "/"))
	}
	return strings.Join(words, " ")
}

// list shows what an object has of a kind, one a line.
func list(plural string, lines []string) string {
	if len(lines) == 0 {
		return "no " + plural
	}
	return fmt.Sprintf("these %s:\n%s", plural, format.IndentString(strings.Join(lines, "\n"), 1))
}
