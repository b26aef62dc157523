package objectcmp_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"snowglobe.test/envtest/objectcmp"
)

var (
	noon  = time.Date(2026, time.January, 2, 12, 0, 0, 0, time.UTC)
	there = time.FixedZone("there", 2*60*60)
)

// selectors is a struct as users have them; API objects hold no selectors of these types.
type selectors struct {
	Labels labels.Selector
	Fields fields.Selector
}

func content(spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"kind": "Snowfall", "spec": spec}}
}

func memory(q resource.Quantity) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceMemory: q}
}

func TestEquate(t *testing.T) {
	micro, microThere := metav1.NewMicroTime(noon), metav1.NewMicroTime(noon.In(there))
	for name, test := range map[string]struct{ x, y any }{
		"quantity":               {memory(resource.MustParse("1Gi")), memory(resource.MustParse("1024Mi"))},
		"zero quantity":          {memory(resource.Quantity{}), memory(resource.MustParse("0"))},
		"time":                   {metav1.NewTime(noon), metav1.NewTime(noon.In(there))},
		"pointer to a time":      {&metav1.Time{Time: noon}, &metav1.Time{Time: noon.In(there)}},
		"microtime":              {micro, microThere},
		"pointer to a microtime": {&micro, &microThere},
		"slice":                  {&corev1.Pod{}, &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{}}}},
		"map":                    {&corev1.Pod{}, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}}}},
		"unstructured list":      {content(map[string]any{"at": []any(nil)}), content(map[string]any{"at": []any{}})},
		"unstructured map":       {content(map[string]any{"at": map[string]any(nil)}), content(map[string]any{"at": map[string]any{}})},
		"int":                    {content(map[string]any{"at": 3}), content(map[string]any{"at": int64(3)})},
		"int32":                  {content(map[string]any{"at": int32(3)}), content(map[string]any{"at": int64(3)})},
		"float":                  {content(map[string]any{"at": []any{3.0}}), content(map[string]any{"at": []any{int64(3)}})},
		"label selector":         {selectors{Labels: in(t, "a", "b", "c")}, selectors{Labels: in(t, "a", "c", "b")}},
		"empty label selectors":  {selectors{Labels: labels.Everything()}, selectors{Labels: labels.NewSelector()}},
		"field selector":         {selectors{Fields: fields.OneTermEqualSelector("a", "b")}, selectors{Fields: fields.AndSelectors(fields.ParseSelectorOrDie("a==b"))}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.False(t, reflect.DeepEqual(test.x, test.y), "values that are the same show nothing")
			assert.Empty(t, cmp.Diff(test.x, test.y, objectcmp.Equate()))
			assert.Empty(t, cmp.Diff(test.y, test.x, objectcmp.Equate()))
		})
	}
}

func parse(t *testing.T, selector string) labels.Selector {
	t.Helper()
	s, err := labels.Parse(selector)
	assert.NoError(t, err)
	return s
}

// in is a selector of labels; it keeps the values in their order, and writes them sorted.
func in(t *testing.T, key string, values ...string) labels.Selector {
	t.Helper()
	requirement, err := labels.NewRequirement(key, selection.In, values)
	assert.NoError(t, err)
	return labels.NewSelector().Add(*requirement)
}

func TestEquateDiffers(t *testing.T) {
	for name, test := range map[string]struct{ x, y any }{
		"quantity":                        {memory(resource.MustParse("1Gi")), memory(resource.MustParse("1G"))},
		"time":                            {metav1.NewTime(noon), metav1.NewTime(noon.Add(1))},
		"time and none":                   {&metav1.Time{}, (*metav1.Time)(nil)},
		"empty and not":                   {[]string{}, []string{"a"}},
		"empty in other types":            {content(map[string]any{"at": map[string]any{}}), content(map[string]any{"at": []any{}})},
		"empty and missing":               {content(map[string]any{"emptyDir": map[string]any{}}), content(map[string]any{})},
		"empty and null":                  {content(map[string]any{"emptyDir": map[string]any{}}), content(map[string]any{"emptyDir": nil})},
		"integer":                         {content(map[string]any{"at": 3}), content(map[string]any{"at": int64(4)})},
		"fraction":                        {content(map[string]any{"at": 3}), content(map[string]any{"at": 3.5})},
		"more than a float holds":         {content(map[string]any{"at": 1<<53 + 1}), content(map[string]any{"at": float64(1 << 53)})},
		"number and text":                 {content(map[string]any{"at": 3}), content(map[string]any{"at": "3"})},
		"label selector":                  {selectors{Labels: parse(t, "a=b")}, selectors{Labels: parse(t, "a=c")}},
		"label selector and none":         {selectors{Labels: parse(t, "a=b")}, selectors{}},
		"every label and none":            {selectors{Labels: labels.Everything()}, selectors{Labels: labels.Nothing()}},
		"field selector":                  {selectors{Fields: fields.OneTermEqualSelector("a", "b")}, selectors{Fields: fields.OneTermEqualSelector("a", "c")}},
		"every field and none":            {selectors{Fields: fields.Everything()}, selectors{Fields: fields.Nothing()}},
		"typed and unstructured":          {&corev1.Pod{}, content(nil)},
		"what IgnoreServerFields ignores": {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "a"}}, &corev1.Pod{}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.False(t, cmp.Equal(test.x, test.y, objectcmp.Equate()))
			assert.False(t, cmp.Equal(test.y, test.x, objectcmp.Equate()))
		})
	}
}

func TestEquateDiff(t *testing.T) {
	renamed := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
	assert.NotContains(t, cmp.Diff(&corev1.Pod{}, renamed, objectcmp.Equate()), "ignored")
}

// go-cmp panics if two options claim the same value, so those that people have already
// must not be claimed again.
func TestEquateLeavesRoom(t *testing.T) {
	sent := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(noon), Labels: map[string]string{}},
		Spec:       corev1.PodSpec{Overhead: memory(resource.MustParse("1500m"))},
	}
	got := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(noon.Add(1))},
		Spec:       corev1.PodSpec{Overhead: memory(resource.MustParse("2"))},
	}
	assert.False(t, cmp.Equal(sent, got, objectcmp.Equate()))
	assert.Empty(t, cmp.Diff(sent, got, objectcmp.Equate(), cmpopts.EquateEmpty(),
		cmp.Comparer(func(x, y resource.Quantity) bool { return x.Value() == y.Value() }),
		cmp.Comparer(func(x, y metav1.Time) bool { return x.Unix() == y.Unix() })))
}
