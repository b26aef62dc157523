package apply

import (
	"context"
	"fmt"
	"net/http"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/conformance/suite"
)

func applyCreatesOnce(ctx context.Context, t *suite.T) {
	o := configMap(ctx, t)
	got := t.ExpectCode(o.ask(ctx, "alice", data(`"color":"red"`)), http.StatusCreated)
	created := o.decoded(got)
	t.Expect(created.GetManagedFields()).To(gomega.HaveLen(1), "%s", got)
	entry := created.GetManagedFields()[0]
	t.Expect(entry.Manager).To(gomega.Equal("alice"))
	t.Expect(entry.Operation).To(gomega.Equal(metav1.ManagedFieldsOperationApply))
	t.Expect(entry.APIVersion).To(gomega.Equal("v1"))
	t.Expect(entry.FieldsType).To(gomega.Equal("FieldsV1"))
	t.Expect(entry.Time).NotTo(gomega.BeNil())
	t.Expect(entry.Subresource).To(gomega.BeEmpty())
	t.Expect(entry.FieldsV1.GetRawString()).To(gomega.MatchJSON(`{"f:data":{"f:color":{}}}`))

	again := t.ExpectCode(o.ask(ctx, "alice", data(`"color":"red"`)), http.StatusOK)
	t.Expect(o.decoded(again)).To(gomega.Equal(created), "applied again")
}

func applyHandsAFieldOver(ctx context.Context, t *suite.T) {
	o := configMap(ctx, t)
	o.apply(ctx, "alice", data(`"color":"red","size":"L"`))
	shared := o.apply(ctx, "bob", data(`"color":"red"`))
	t.Expect(suite.Owners(shared, "f:color")).To(gomega.Equal([]string{"alice Apply", "bob Apply"}))
	o.conflicts(o.ask(ctx, "alice", data(`"color":"blue","size":"L"`)), "bob", ".data.color")

	left := o.apply(ctx, "alice", data(`"size":"L"`))
	t.Expect(suite.Value(left, "data")).To(gomega.Equal(map[string]any{"color": "red", "size": "L"}))
	t.Expect(suite.Owners(left, "f:color")).To(gomega.Equal([]string{"bob Apply"}))
	o.conflicts(o.ask(ctx, "alice", data(`"color":"blue","size":"L"`)), "bob", ".data.color")

	// Who owns a field alone changes it without being asked.
	t.Expect(suite.Value(o.apply(ctx, "bob", data(`"color":"blue"`)), "data", "color")).To(gomega.Equal("blue"))
	gone := o.apply(ctx, "bob", fields{})
	t.Expect(suite.Value(gone, "data")).To(gomega.Equal(map[string]any{"size": "L"}))
}

func applyDryRunDecidesAlike(ctx context.Context, t *suite.T) {
	o := configMap(ctx, t)
	t.ExpectCode(o.ask(ctx, "alice", data(`"color":"red"`), "dryRun=All"), http.StatusCreated)
	t.Answered(ctx, o.collection+"/"+o.name, http.StatusNotFound)

	created := o.apply(ctx, "alice", data(`"color":"red"`))
	added := o.apply(ctx, "bob", data(`"size":"L"`), "dryRun=All")
	t.Expect(suite.Value(added, "data")).To(gomega.Equal(map[string]any{"color": "red", "size": "L"}))
	t.Expect(suite.Owners(added, "f:size")).To(gomega.Equal([]string{"bob Apply"}))
	o.conflicts(o.ask(ctx, "bob", data(`"color":"blue"`), "dryRun=All"), "alice", ".data.color")
	forced := o.apply(ctx, "bob", data(`"color":"blue"`), "dryRun=All", "force=true")
	t.Expect(suite.Owners(forced, "f:color")).To(gomega.Equal([]string{"bob Apply"}))
	t.Expect(o.read(ctx)).To(gomega.Equal(created), "after three dry runs")
}

func updateTakesFieldsOver(ctx context.Context, t *suite.T) {
	o := configMap(ctx, t)
	o.apply(ctx, "alice", data(`"color":"red","size":"L"`))
	updated := o.put(ctx, "bob", data(`"color":"blue","size":"L"`))
	t.Expect(suite.Owners(updated, "f:color")).To(gomega.Equal([]string{"bob Update"}))
	t.Expect(suite.Owners(updated, "f:size")).To(gomega.Equal([]string{"alice Apply"}), "bob did not change it")

	o.conflicts(o.ask(ctx, "alice", data(`"color":"red","size":"L"`)), "bob", ".data.color")
	back := o.apply(ctx, "alice", data(`"color":"red","size":"L"`), "force=true")
	t.Expect(suite.Value(back, "data", "color")).To(gomega.Equal("red"))
	t.Expect(suite.Owners(back, "f:color")).To(gomega.Equal([]string{"alice Apply"}))
	t.Expect(back.GetManagedFields()).To(gomega.HaveLen(1), "bob owns nothing any more")
}

func removedFieldHasNoOwner(ctx context.Context, t *suite.T) {
	o := configMap(ctx, t)
	o.apply(ctx, "alice", data(`"color":"red","size":"L"`))
	without := o.put(ctx, "bob", data(`"size":"L"`))
	t.Expect(suite.Owners(without, "f:color")).To(gomega.BeEmpty())
	t.Expect(suite.Owners(without, "f:size")).To(gomega.Equal([]string{"alice Apply"}))
	anew := o.apply(ctx, "carol", data(`"color":"blue"`))
	t.Expect(suite.Owners(anew, "f:color")).To(gomega.Equal([]string{"carol Apply"}))
}

func managersBeforeTheFirstApply(ctx context.Context, t *suite.T) {
	o := configMap(ctx, t)
	o.apply(ctx, "alice", data(`"color":"red"`))
	cleared := o.put(ctx, "bob", fields{metadata: `"managedFields":[{}]`, top: `"data":{"color":"red"}`})
	t.Expect(cleared.GetManagedFields()).To(gomega.BeEmpty())
	o.conflicts(o.ask(ctx, "carol", data(`"color":"blue"`)), "before-first-apply", ".data.color")
	shared := o.apply(ctx, "carol", data(`"color":"red"`))
	t.Expect(suite.Owners(shared, "f:color")).To(gomega.Equal([]string{"before-first-apply Update", "carol Apply"}))
}

func oldUpdateManagersAreMerged(ctx context.Context, t *suite.T) {
	o := configMap(ctx, t)
	o.apply(ctx, "alice", data(`"own":"x"`))
	content := `"own":"x"`
	for i := range 12 {
		content += fmt.Sprintf(`,"k%02d":"x"`, i)
		o.put(ctx, fmt.Sprintf("updater-%02d", i), data(content))
	}
	last := o.read(ctx)
	t.Expect(suite.Owners(last, "f:own")).To(gomega.Equal([]string{"alice Apply"}))
	t.Expect(suite.Owners(last, "f:k00")).To(gomega.Equal([]string{"ancient-changes Update"}))
	t.Expect(suite.Owners(last, "f:k11")).To(gomega.Equal([]string{"updater-11 Update"}))
	updaters := 0
	for _, entry := range last.GetManagedFields() {
		if entry.Operation == metav1.ManagedFieldsOperationUpdate {
			updaters++
		}
	}
	t.Expect(updaters).To(gomega.Equal(10), "managers that update: %v", last.GetManagedFields())
}
