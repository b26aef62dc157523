package suite

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// CaseLabel marks a case's ConfigMaps: controllers add their own to a namespace.
const CaseLabel = "conformance.snowglobe.test/case"

// ConfigMaps is the built-in resource that cases write, in the case's namespace.
type ConfigMaps struct {
	typedcorev1.ConfigMapInterface
	T         *T
	Namespace string
}

// ConfigMaps returns those of the case\'s namespace.
func (t *T) ConfigMaps(ctx context.Context) *ConfigMaps {
	namespace := t.Namespace(ctx)
	return &ConfigMaps{ConfigMapInterface: t.Kube.CoreV1().ConfigMaps(namespace), T: t, Namespace: namespace}
}

// Path is that of the collection.
func (c *ConfigMaps) Path() string { return "/api/v1/namespaces/" + c.Namespace + "/configmaps" }

// Mine selects the case's own ConfigMaps.
func (c *ConfigMaps) Mine(change ...func(*metav1.ListOptions)) metav1.ListOptions {
	opts := metav1.ListOptions{LabelSelector: CaseLabel + "=" + c.T.Name}
	for _, f := range change {
		f(&opts)
	}
	return opts
}

// From starts a watch or a list at a resourceVersion.
func From(version string) func(*metav1.ListOptions) {
	return func(opts *metav1.ListOptions) { opts.ResourceVersion = version }
}

// Object returns a ConfigMap of the case without creating it.
func (c *ConfigMaps) Object(name, content string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{CaseLabel: c.T.Name}},
		Data:       map[string]string{"content": content},
	}
}

// Make creates ConfigMaps and returns the last.
func (c *ConfigMaps) Make(ctx context.Context, names ...string) *corev1.ConfigMap {
	var last *corev1.ConfigMap
	for _, name := range names {
		last = c.MustCreate(ctx, c.Object(name, "first"))
	}
	return last
}

// MustCreate creates one, or fails the case.
func (c *ConfigMaps) MustCreate(ctx context.Context, object *corev1.ConfigMap) *corev1.ConfigMap {
	return Create(ctx, c.T, c.Create, object)
}

// MakeColored creates ConfigMaps with a label color, by name.
func (c *ConfigMaps) MakeColored(ctx context.Context, colors map[string]string) {
	for name, color := range colors {
		object := c.Object(name, "first")
		object.Labels["color"] = color
		c.MustCreate(ctx, object)
	}
}

// Read gets one, or fails the case.
func (c *ConfigMaps) Read(ctx context.Context, name string) *corev1.ConfigMap {
	return Get(ctx, c.T, c.Get, name)
}

// Merge sends a JSON merge patch.
func (c *ConfigMaps) Merge(ctx context.Context, name, patch string) (*corev1.ConfigMap, error) {
	return c.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
}

// Change updates the content of one, or fails the case.
func (c *ConfigMaps) Change(ctx context.Context, name, content string) *corev1.ConfigMap {
	return Update(ctx, c.T, c.Update, c.Object(name, content))
}

// Remove deletes one, or fails the case.
func (c *ConfigMaps) Remove(ctx context.Context, name string) {
	c.T.Must(c.Delete(ctx, name, metav1.DeleteOptions{}), "delete ConfigMap %s", name)
}

// Refuses asserts that requests of the collection with these queries are invalid.
func (c *ConfigMaps) Refuses(ctx context.Context, queries ...string) {
	for _, query := range queries {
		got := c.T.Get(ctx, c.Path()+"?"+query)
		c.T.ExpectStatus(got, Invalid)
	}
}

// MustList lists them, or fails the case.
func (c *ConfigMaps) MustList(ctx context.Context, opts metav1.ListOptions) *corev1.ConfigMapList {
	return List(ctx, c.T, c.List, opts)
}

// Names of the ConfigMaps in a list, sorted.
func Names(list *corev1.ConfigMapList) []string {
	found := make([]string, 0, len(list.Items))
	for _, item := range list.Items {
		found = append(found, item.Name)
	}
	slices.Sort(found)
	return found
}
