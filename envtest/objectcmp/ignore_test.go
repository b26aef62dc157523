package objectcmp_test

//lint:file-ignore SA1019 a server may still set selfLink

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"snowglobe.test/envtest/objectcmp"
)

// snowfall is a custom resource as people write its type, with metadata inside its spec.
type snowfall struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              snowfallSpec   `json:"spec,omitempty"`
	Status            snowfallStatus `json:"status,omitempty"`
}

type snowfallSpec struct {
	Template snowfallTemplate `json:"template,omitempty"`
	Status   string           `json:"status,omitempty"`
}

type snowfallTemplate struct {
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

type snowfallStatus struct {
	Flakes int64 `json:"flakes,omitempty"`
}

// noted is an object with something about it, as tests have them in their tables.
type noted struct {
	corev1.Pod
	Note string
}

// flakes has what a list has, but is none.
type flakes struct {
	Items  []string `json:"items"`
	Status string   `json:"status"`
}

// fromServer is metadata that only a server sets.
func fromServer() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		UID: "5e4f", ResourceVersion: "12", Generation: 3, SelfLink: "/x", CreationTimestamp: metav1.NewTime(noon),
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "test"}},
	}
}

// untyped is the same object as unstructured content.
func untyped(t *testing.T, object any) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	assert.NoError(t, err)
	return &unstructured.Unstructured{Object: content}
}

func TestIgnoreServerFields(t *testing.T) {
	kind := metav1.TypeMeta{Kind: "Snowfall", APIVersion: "example.test/v1"}
	listMeta := metav1.ListMeta{ResourceVersion: "12", Continue: "x", RemainingItemCount: ptr.To[int64](3), SelfLink: "/x"}
	sent, got := &snowfall{}, &snowfall{ObjectMeta: fromServer()}
	items := func(list map[string]any, items ...*unstructured.Unstructured) *unstructured.UnstructuredList {
		l := &unstructured.UnstructuredList{Object: map[string]any{"metadata": list}}
		for _, item := range items {
			l.Items = append(l.Items, *item)
		}
		return l
	}
	inContent := func(list map[string]any, items ...*unstructured.Unstructured) *unstructured.Unstructured {
		var objects []any
		for _, item := range items {
			objects = append(objects, item.Object)
		}
		return &unstructured.Unstructured{Object: map[string]any{"metadata": list, "items": objects}}
	}
	named := untyped(t, &snowfall{ObjectMeta: metav1.ObjectMeta{Name: "x"}})
	namedMeta := fromServer()
	namedMeta.Name = "x"
	back := untyped(t, &snowfall{ObjectMeta: namedMeta})
	untypedListMeta := map[string]any{"resourceVersion": "12", "continue": "x", "remainingItemCount": int64(3), "selfLink": "/x"}
	for name, test := range map[string]struct{ sent, got any }{
		"core":              {&corev1.Pod{}, &corev1.Pod{ObjectMeta: fromServer()}},
		"apps":              {&appsv1.Deployment{}, &appsv1.Deployment{ObjectMeta: fromServer()}},
		"custom":            {sent, got},
		"value":             {*sent, *got},
		"embedded":          {noted{}, noted{Pod: corev1.Pod{ObjectMeta: fromServer()}}},
		"metadata alone":    {sent.ObjectMeta, got.ObjectMeta},
		"partial":           {&metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadata{ObjectMeta: fromServer()}},
		"slice":             {[]*snowfall{sent, sent}, []*snowfall{got, got}},
		"map in a struct":   {struct{ M map[string]any }{map[string]any{"metadata": sent}}, struct{ M map[string]any }{map[string]any{"metadata": got}}},
		"list":              {&corev1.PodList{Items: make([]corev1.Pod, 1)}, &corev1.PodList{ListMeta: listMeta, Items: []corev1.Pod{{ObjectMeta: fromServer()}}}},
		"kind":              {sent, &snowfall{TypeMeta: kind}},
		"unstructured":      {named, back},
		"unstructured list": {items(map[string]any{}, named), items(untypedListMeta, back)},
		"list in content":   {inContent(map[string]any{}, named), inContent(untypedListMeta, back)},
	} {
		t.Run(name, func(t *testing.T) {
			assert.False(t, cmp.Equal(test.sent, test.got, objectcmp.Equate()))
			assert.Empty(t, cmp.Diff(test.sent, test.got, objectcmp.Equate(), objectcmp.IgnoreServerFields()))
			assert.Empty(t, cmp.Diff(test.got, test.sent, objectcmp.Equate(), objectcmp.IgnoreServerFields()))
		})
	}
}

func TestIgnoreServerFieldsLooksAtObjectsOnly(t *testing.T) {
	inTemplate := &snowfall{Spec: snowfallSpec{Template: snowfallTemplate{ObjectMeta: fromServer()}}}
	claims := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: fromServer()}}}}
	noClaims := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{VolumeClaimTemplates: make([]corev1.PersistentVolumeClaim, 1)}}
	content := func(root map[string]any) *unstructured.Unstructured { return &unstructured.Unstructured{Object: root} }
	for name, test := range map[string]struct{ x, y any }{
		"template":              {&snowfall{}, inTemplate},
		"unstructured template": {untyped(t, &snowfall{}), untyped(t, inTemplate)},
		"claim template":        {noClaims, claims},
		"uid elsewhere":         {content(map[string]any{"uid": "a"}), content(map[string]any{"uid": "b"})},
		"uid below metadata":    {content(map[string]any{"metadata": map[string]any{"labels": map[string]any{"uid": "a"}}}), content(map[string]any{"metadata": map[string]any{"labels": map[string]any{"uid": "b"}}})},
		"items' items": {
			content(map[string]any{"items": []any{map[string]any{"items": []any{map[string]any{"metadata": map[string]any{"uid": "a"}}}}}}),
			content(map[string]any{"items": []any{map[string]any{"items": []any{map[string]any{"metadata": map[string]any{"uid": "b"}}}}}}),
		},
		"name":              {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "b"}}},
		"deletion":          {&corev1.Pod{}, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: noon}}}},
		"status":            {&corev1.Pod{}, &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning}}},
		"kinds":             {&snowfall{TypeMeta: metav1.TypeMeta{Kind: "A"}}, &snowfall{TypeMeta: metav1.TypeMeta{Kind: "B"}}},
		"unstructured kind": {content(map[string]any{"kind": "A"}), content(map[string]any{})},
		"other struct":      {struct{ UID string }{"a"}, struct{ UID string }{"b"}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.False(t, cmp.Equal(test.x, test.y, objectcmp.Equate(), objectcmp.IgnoreServerFields()))
			assert.False(t, cmp.Equal(test.y, test.x, objectcmp.Equate(), objectcmp.IgnoreServerFields()))
		})
	}
}

// The items are still those of the list after another option has sorted them.
func TestIgnoreServerFieldsInSortedItems(t *testing.T) {
	pod := func(name, version string) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
	}
	x := &corev1.PodList{Items: []corev1.Pod{pod("a", ""), pod("b", "")}}
	y := &corev1.PodList{Items: []corev1.Pod{pod("b", "2"), pod("a", "1")}}
	sorted := cmpopts.SortSlices(func(a, b corev1.Pod) bool { return a.Name < b.Name })
	assert.False(t, cmp.Equal(x, y, objectcmp.Equate(), sorted))
	assert.Empty(t, cmp.Diff(x, y, objectcmp.Equate(), objectcmp.IgnoreServerFields(), sorted))
}

func TestIgnoreStatus(t *testing.T) {
	running := corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	fallen := &snowfall{Status: snowfallStatus{Flakes: 3}}
	fresh := untyped(t, &snowfall{})
	unstructured.RemoveNestedField(fresh.Object, "status")
	for name, test := range map[string]struct{ x, y any }{
		"core":         {&corev1.Pod{}, &running},
		"custom":       {&snowfall{}, fallen},
		"list":         {&corev1.PodList{Items: make([]corev1.Pod, 1)}, &corev1.PodList{Items: []corev1.Pod{running}}},
		"unstructured": {fresh, untyped(t, fallen)},
	} {
		t.Run(name, func(t *testing.T) {
			assert.False(t, cmp.Equal(test.x, test.y))
			assert.Empty(t, cmp.Diff(test.x, test.y, objectcmp.IgnoreStatus()))
		})
	}
}

func TestIgnoreStatusLooksAtObjectsOnly(t *testing.T) {
	x := &snowfall{Spec: snowfallSpec{Status: "a"}}
	for name, test := range map[string]struct{ x, y any }{
		"in the spec":              {x, &snowfall{}},
		"in unstructured spec":     {untyped(t, x), untyped(t, &snowfall{Spec: snowfallSpec{Status: "b"}})},
		"of a condition":           {metav1.Condition{Status: "True"}, metav1.Condition{Status: "False"}},
		"of no object":             {flakes{Status: "a"}, flakes{Status: "b"}},
		"the answer of the server": {&metav1.Status{Status: metav1.StatusFailure}, &metav1.Status{Status: metav1.StatusSuccess}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.False(t, cmp.Equal(test.x, test.y, objectcmp.IgnoreStatus()))
		})
	}
}
