package objectcmp

import (
	"reflect"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// Equate treats values that mean the same as equal, as apimachinery's equality.Semantic does:
//
//   - a resource.Quantity, by its amount: "1" is "1000m";
//   - a metav1.Time or metav1.MicroTime, by its instant, in any time zone. On the wire the
//     first has whole seconds and the second microseconds, so time.Now() comes back as a
//     different instant: send metav1.Now().Rfc3339Copy();
//   - a slice or map, if it is empty: whether it is nil does not matter;
//   - a labels.Selector or fields.Selector, by its String;
//   - an integer in unstructured content, by its value: Go literals are an int where
//     decoders make an int64 or a float64.
//
// In unstructured content a missing field is not the same as an empty one: the API tells
// them apart, as in emptyDir: {}.
func Equate() cmp.Option {
	// Quantities and times need no option: go-cmp calls their methods Equal. Ignore,
	// unlike a Comparer, is no conflict with the caller's own options for the same values.
	return cmp.Options{
		cmp.FilterValues(nilAndEmpty, cmp.Ignore()),
		cmp.FilterValues(sameInteger, cmp.Ignore()),
		cmp.Comparer(equalSelectors[labels.Selector]),
		cmp.Comparer(equalSelectors[fields.Selector]),
	}
}

// nilAndEmpty reports whether one is a nil slice or map and the other is an empty one. Two
// of a sort are equal anyhow, and a diff is not to call them ignored.
func nilAndEmpty(x, y any) bool {
	vx, vy := reflect.ValueOf(x), reflect.ValueOf(y)
	if !vx.IsValid() || !vy.IsValid() || vx.Type() != vy.Type() {
		return false
	}
	if vx.Kind() != reflect.Slice && vx.Kind() != reflect.Map {
		return false
	}
	return vx.Len() == 0 && vy.Len() == 0 && vx.IsNil() != vy.IsNil()
}

// sameInteger reports whether two values of different types are the same integer.
func sameInteger(x, y any) bool {
	if reflect.TypeOf(x) == reflect.TypeOf(y) {
		return false
	}
	i, isInteger := integer(x)
	j, areIntegers := integer(y)
	return isInteger && areIntegers && i == j
}

// integer is the value of one of the types that JSON numbers have in unstructured content,
// and of those that people write there.
func integer(v any) (int64, bool) {
	switch v := v.(type) {
	case int:
		return int64(v), true
	case int32:
		return int64(v), true
	case int64:
		return v, true
	case float64:
		return int64(v), float64(int64(v)) == v
	}
	return 0, false
}

type selector interface {
	comparable
	Empty() bool
	String() string
}

// equalSelectors asks Empty, too: Everything and Nothing have the same String.
func equalSelectors[S selector](x, y S) bool {
	var none S
	if x == none || y == none {
		return x == y
	}
	return x.Empty() == y.Empty() && x.String() == y.String()
}
