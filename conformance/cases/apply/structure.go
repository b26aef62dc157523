package apply

import (
	"context"

	"github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"snowglobe.test/conformance/suite"
)

var structureCases = []suite.Case{
	{ID: "S12/apply-merges-lists-by-key", Level: suite.Core, Failure: true, Test: applyMergesListsByKey,
		Source: "KEP-555; sigs.k8s.io/structured-merge-diff/v6/typed/merge.go; k8s.io/api/core/v1/types.go: " +
			"containers are a map with the key name",
		Promise: "A list with keys is merged item by item, each field of an item has owners of its own, and a " +
			"conflict names the item by its key."},
	{ID: "S12/apply-replaces-atomic-values", Level: suite.Core, Failure: true, Test: applyReplacesAtomicValues,
		Source: "KEP-555; sigs.k8s.io/structured-merge-diff/v6/typed/merge.go: atomic lists and maps",
		Promise: "An atomic list or map has one value and one owner: another one conflicts as a whole, and by force " +
			"replaces it whole."},
	{ID: "S12/apply-joins-sets", Level: suite.Core, Test: applyJoinsSets,
		Source: "KEP-555; sigs.k8s.io/structured-merge-diff/v6/typed/merge.go: lists that are sets; " +
			"finalizers are one",
		Promise: "A set holds what its managers apply together, and loses what the last of them stops to apply."},
	{ID: "S12/apply-to-status-is-apart", Level: suite.Core, Test: applyToStatusIsApart,
		Source: "KEP-555; k8s.io/apimachinery/pkg/util/managedfields/internal/stripmeta.go and fieldmanager.go: " +
			"reset fields; k8s.io/apiserver/pkg/registry/rest/rest.go, ResetFieldsStrategy",
		Promise: "A manager that applies status by its subresource has an entry with that name; what it applies " +
			"beside the status is ignored, as is status in the object."},
}

// containers are those of a Deployment that has no pods.
func containers(list string) fields {
	return fields{
		top: `"spec":{"template":{"spec":{"containers":[` + list + `]}}}`}
}

// whole is a Deployment that has no pods, with one container.
func whole(podFields, containerFields string) fields {
	return fields{top: `"spec":{"replicas":0,"selector":{"matchLabels":{"app":"x"}},` +
		`"template":{"metadata":{"labels":{"app":"x"}},` +
		`"spec":{"containers":[{"name":"one","image":"first"` + containerFields + `}]` + podFields + `}}}`}
}

func applyMergesListsByKey(ctx context.Context, t *suite.T) {
	o := deployment(ctx, t)
	o.apply(ctx, "alice", whole("", ""))
	o.apply(ctx, "bob",
		containers(`{"name":"two","image":"second"},{"name":"one","env":[{"name":"COLOR","value":"red"}]}`))
	list := func() []string {
		var found []string
		items, _ := suite.Value(o.read(ctx), "spec", "template", "spec", "containers").([]any)
		for _, item := range items {
			container, _ := item.(map[string]any)
			name, _ := container["name"].(string)
			image, _ := container["image"].(string)
			if container["env"] != nil {
				image += " with env"
			}
			found = append(found, name+" "+image)
		}
		return found
	}
	t.Expect(list()).To(gomega.ConsistOf("one first with env", "two second"))
	t.Expect(suite.Owners(o.read(ctx), `k:{"name":"one"}`)).To(gomega.Equal([]string{"alice Apply", "bob Apply"}))
	t.Expect(suite.Owners(o.read(ctx), `k:{"name":"two"}`)).To(gomega.Equal([]string{"bob Apply"}))
	o.conflicts(o.ask(ctx, "bob", containers(`{"name":"one","image":"other"}`)), "alice",
		`.spec.template.spec.containers[name="one"].image`)
	o.apply(ctx, "bob", containers(`{"name":"one"}`))
	t.Expect(list()).To(gomega.Equal([]string{"one first"}), "bob applies neither env nor the second container "+
		"any more")
}

func applyReplacesAtomicValues(ctx context.Context, t *suite.T) {
	o := deployment(ctx, t)
	o.apply(ctx, "alice", whole(`,"nodeSelector":{"disk":"ssd"}`, `,"args":["x","y"]`))
	args := containers(`{"name":"one","args":["x"]}`)
	o.conflicts(o.ask(ctx, "bob", args), "alice", `.spec.template.spec.containers[name="one"].args`)
	forced := o.apply(ctx, "bob", args, "force=true")
	t.Expect(suite.Owners(forced, "f:args")).To(gomega.Equal([]string{"bob Apply"}))
	items, _ := suite.Value(forced, "spec", "template", "spec", "containers").([]any)
	t.Expect(items).To(gomega.ConsistOf(gomega.HaveKeyWithValue("args", []any{"x"})))

	selector := fields{top: `"spec":{"template":{"spec":{"nodeSelector":{"zone":"a"}}}}`}
	o.conflicts(o.ask(ctx, "carol", selector), "alice", `.spec.template.spec.nodeSelector`)
	replaced := o.apply(ctx, "carol", selector, "force=true")
	t.Expect(suite.Value(replaced, "spec", "template", "spec", "nodeSelector")).
		To(gomega.Equal(map[string]any{"zone": "a"}))
	t.Expect(suite.Owners(replaced, "f:nodeSelector")).To(gomega.Equal([]string{"carol Apply"}))
}

func applyJoinsSets(ctx context.Context, t *suite.T) {
	o := configMap(ctx, t)
	held := func(names string) fields { return fields{metadata: `"finalizers":[` + names + `]`} }
	const first, second = "conformance.snowglobe.test/first", "conformance.snowglobe.test/second"
	o.apply(ctx, "alice", held(`"`+first+`"`))
	both := o.apply(ctx, "bob", held(`"`+second+`","`+first+`"`))
	t.Expect(both.GetFinalizers()).To(gomega.ConsistOf(first, second))
	t.Expect(suite.Owners(both, `v:"`+first+`"`)).To(gomega.Equal([]string{"alice Apply", "bob Apply"}))
	left := o.apply(ctx, "bob", held(`"`+first+`"`))
	t.Expect(left.GetFinalizers()).To(gomega.Equal([]string{first}))
	t.Expect(o.apply(ctx, "alice", fields{}).GetFinalizers()).To(gomega.Equal([]string{first}), "it is bob's as well")
	t.Expect(o.apply(ctx, "bob", fields{}).GetFinalizers()).To(gomega.BeEmpty())
}

func applyToStatusIsApart(ctx context.Context, t *suite.T) {
	w := t.Install(ctx, t.WidgetCRD(suite.WithSubresources(apiextensionsv1.CustomResourceSubresources{
		Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
	})))
	o := object{t, w.Path, w.Resource.GroupVersion().String(), "Widget", "a"}
	both := func(size, phase string) fields {
		return fields{top: `"spec":{"size":` + size + `},"status":{"phase":"` + phase + `"}`}
	}
	created := o.apply(ctx, "alice", both("1", "ignored"))
	t.Expect(suite.Value(created, "status")).To(gomega.BeNil())
	t.Expect(suite.Owners(created, "f:phase")).To(gomega.BeEmpty())

	status := o
	status.name = "a/status"
	got := status.send(ctx, o.body(both("2", "ready")), "fieldManager=controller")
	applied := o.decoded(got)
	t.Expect(suite.Value(applied, "status", "phase")).To(gomega.Equal("ready"))
	t.Expect(suite.Value(applied, "spec", "size")).To(gomega.BeEquivalentTo(1))
	t.Expect(suite.Owners(applied, "f:size")).To(gomega.Equal([]string{"alice Apply"}))
	t.Expect(suite.Owners(applied, "f:phase")).To(gomega.Equal([]string{"controller Apply"}))
	for _, entry := range applied.GetManagedFields() {
		want := map[string]string{"alice": "", "controller": "status"}
		t.Expect(entry.Subresource).To(gomega.Equal(want[entry.Manager]), "manager %s: %s", entry.Manager, got)
	}
}
