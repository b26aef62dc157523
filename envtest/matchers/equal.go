package matchers

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega/format"
	"github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/runtime"

	"snowglobe.test/envtest/objectcmp"
)

// EqualObject matches an object, or a list, that means the same as the wanted one; see
// [objectcmp.Equate], which is always among the options. Its failure message shows the
// differences:
//
//	Expect(got).To(EqualObject(want, objectcmp.IgnoreServerFields(), objectcmp.IgnoreStatus()))
func EqualObject(want runtime.Object, opts ...cmp.Option) types.GomegaMatcher {
	return equalMatcher{want, append(cmp.Options{objectcmp.Equate()}, opts...)}
}

type equalMatcher struct {
	want runtime.Object
	opts cmp.Options
}

func (m equalMatcher) Match(actual any) (bool, error) {
	want, err := as[runtime.Object](m.want)
	if err != nil {
		return false, fmt.Errorf("equal what is wanted, which is no object: %w", err)
	}
	got, err := as[runtime.Object](actual)
	if err != nil {
		return false, fmt.Errorf("equal %s: %w", describe(want), err)
	}
	if reflect.TypeOf(want) != reflect.TypeOf(got) {
		return false, fmt.Errorf("equal %s: want a %T, got a %T: convert one of them", describe(want), want, got)
	}
	return cmp.Equal(want, got, m.opts), nil
}

func (m equalMatcher) FailureMessage(actual any) string {
	got, err := as[runtime.Object](actual)
	if err != nil { // Match has returned it
		return err.Error()
	}
	diff := strings.TrimSpace(cmp.Diff(m.want, got, m.opts))
	return fmt.Sprintf("Expected %s to equal what is wanted (-want +got):\n%s", describe(got), format.IndentString(diff, 1))
}

func (m equalMatcher) NegatedFailureMessage(any) string {
	return fmt.Sprintf("Expected an object that does not equal\n%s", format.Object(m.want, 1))
}
