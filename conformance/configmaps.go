package conformance

import (
	"context"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// caseLabel marks a case's ConfigMaps: controllers add their own to a namespace.
const caseLabel = "conformance.snowglobe.test/case"

// configMaps is the built-in resource that cases write, in the case's namespace.
type configMaps struct {
	typedcorev1.ConfigMapInterface
	target    *Target
	namespace string
}

func (t *Target) configMaps(ctx context.Context) *configMaps {
	namespace := t.Namespace(ctx)
	return &configMaps{ConfigMapInterface: t.kube.CoreV1().ConfigMaps(namespace), target: t, namespace: namespace}
}

func (c *configMaps) path() string { return "/api/v1/namespaces/" + c.namespace + "/configmaps" }

// mine selects the case's own ConfigMaps.
func (c *configMaps) mine(change ...func(*metav1.ListOptions)) metav1.ListOptions {
	opts := metav1.ListOptions{LabelSelector: caseLabel + "=" + c.target.Name}
	for _, f := range change {
		f(&opts)
	}
	return opts
}

// from starts a watch or a list at a resourceVersion.
func from(version string) func(*metav1.ListOptions) {
	return func(opts *metav1.ListOptions) { opts.ResourceVersion = version }
}

func (c *configMaps) object(name, content string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{caseLabel: c.target.Name}},
		Data:       map[string]string{"content": content},
	}
}

// make creates ConfigMaps and returns the last.
func (c *configMaps) make(ctx context.Context, names ...string) *corev1.ConfigMap {
	var last *corev1.ConfigMap
	for _, name := range names {
		last = c.create(ctx, c.object(name, "first"))
	}
	return last
}

func (c *configMaps) create(ctx context.Context, object *corev1.ConfigMap) *corev1.ConfigMap {
	created, err := c.Create(ctx, object, metav1.CreateOptions{})
	c.target.must(err, "create ConfigMap %s", object.Name)
	return created
}

// makeColored creates ConfigMaps with a label color, by name.
func (c *configMaps) makeColored(ctx context.Context, colors map[string]string) {
	for name, color := range colors {
		object := c.object(name, "first")
		object.Labels["color"] = color
		c.create(ctx, object)
	}
}

func (c *configMaps) read(ctx context.Context, name string) *corev1.ConfigMap {
	got, err := c.Get(ctx, name, metav1.GetOptions{})
	c.target.must(err, "get ConfigMap %s", name)
	return got
}

func (c *configMaps) merge(ctx context.Context, name, patch string) (*corev1.ConfigMap, error) {
	return c.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
}

func (c *configMaps) change(ctx context.Context, name, content string) *corev1.ConfigMap {
	updated, err := c.Update(ctx, c.object(name, content), metav1.UpdateOptions{})
	c.target.must(err, "update ConfigMap %s", name)
	return updated
}

func (c *configMaps) remove(ctx context.Context, name string) {
	c.target.must(c.Delete(ctx, name, metav1.DeleteOptions{}), "delete ConfigMap %s", name)
}

// refuses asserts that requests of the collection with these queries are invalid.
func (c *configMaps) refuses(ctx context.Context, queries ...string) {
	for _, query := range queries {
		got := c.target.get(ctx, c.path()+"?"+query)
		c.target.expectStatus(got, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
	}
}

func (c *configMaps) list(ctx context.Context, opts metav1.ListOptions) *corev1.ConfigMapList {
	list, err := c.List(ctx, opts)
	c.target.must(err, "list ConfigMaps with %s", show(opts))
	return list
}

// names of the ConfigMaps in a list, sorted.
func names(list *corev1.ConfigMapList) []string {
	found := make([]string, 0, len(list.Items))
	for _, item := range list.Items {
		found = append(found, item.Name)
	}
	slices.Sort(found)
	return found
}
