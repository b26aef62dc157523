package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var writeCases = []Case{
	{ID: "S12/stale-update-conflicts", Test: staleUpdateConflicts,
		Promise: "An update that carries an old resourceVersion is refused with 409 Conflict and changes nothing; one that carries none is not checked."},
	{ID: "S12/update-without-change-is-no-write", Test: updateWithoutChangeIsNoWrite,
		Promise: "An update that changes nothing keeps the resourceVersion and causes no event."},
	{ID: "S12/second-create-already-exists", Test: secondCreateAlreadyExists,
		Promise: "Creating a name that is taken is refused with 409 AlreadyExists and leaves the first object alone."},
	{ID: "S12/generated-names-differ", Test: generatedNamesDiffer,
		Promise: "generateName gives each object a name of its own with that prefix."},
	{ID: "S12/dry-run-leaves-nothing", Test: dryRunLeavesNothing,
		Promise: "dryRun=All answers creates, updates and deletions as if they had been done, and leaves neither object nor event."},
	{ID: "S12/delete-preconditions-hold", Test: deletePreconditionsHold,
		Promise: "A deletion with the precondition of another UID or resourceVersion is refused with 409; one with the right ones succeeds."},
	{ID: "S12/delete-collection-deletes-the-selected", Test: deleteCollectionDeletesTheSelected,
		Promise: "Deleting a collection with a selector deletes what it selects and nothing else."},
	{ID: "S12/json-patch-tests-first", Test: jsonPatchTestsFirst,
		Promise: "A JSON patch is applied whole or, if one of its tests fails, not at all."},
	{ID: "S12/merge-patch-removes-with-null", Test: mergePatchRemovesWithNull,
		Promise: "A merge patch sets what it names, removes what it names with null, and leaves the rest."},
	{ID: "S12/strategic-merge-patch-merges-lists", Test: strategicMergePatchMergesLists,
		Promise: "A strategic merge patch of a built-in type merges a keyed list by its key."},
	{ID: "S12/apply-conflicts-name-the-manager", Test: applyConflictsNameTheManager,
		Promise: "Server-side apply of a field that another manager owns is refused with a 409 that names the manager and the field; with force it takes the field over."},
	{ID: "S12/apply-removes-what-it-no-longer-names", Test: applyRemovesWhatItNoLongerNames,
		Promise: "A field that a manager stops applying is removed, unless another manager owns it too."},
	{ID: "S12/immutable-means-immutable", Test: immutableMeansImmutable,
		Promise: "Neither the content of an immutable ConfigMap nor its immutable field can be changed: 422 that names the field."},
	{ID: "S9/no-object-without-its-namespace", Test: noObjectWithoutItsNamespace,
		Promise: "An object can't be created in a namespace that does not exist: 404 that names the namespace."},
}

// k8s.io/apiserver/pkg/registry/generic/registry/store.go, Update.
func staleUpdateConflicts(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	first := cms.make(ctx, "a")
	cms.change(ctx, "a", "second")
	stale := first.DeepCopy()
	stale.Data["content"] = "stale"
	_, err := cms.Update(ctx, stale, metav1.UpdateOptions{})
	t.Expect(err).To(beStatus(http.StatusConflict, metav1.StatusReasonConflict))
	t.Expect(cms.read(ctx, "a").Data["content"]).To(gomega.Equal("second"))
	stale.ResourceVersion = ""
	t.Expect(cms.Update(ctx, stale, metav1.UpdateOptions{})).To(gomega.HaveField("Data", stale.Data))
}

// k8s.io/apiserver/pkg/storage/etcd3/store.go, GuaranteedUpdate: the short cut
// for equal bytes.
func updateWithoutChangeIsNoWrite(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	created := cms.make(ctx, "a")
	events := t.watch(ctx, cms.Watch, cms.mine(from(created.ResourceVersion)))
	t.Expect(cms.Update(ctx, created, metav1.UpdateOptions{})).To(gomega.HaveField("ResourceVersion", created.ResourceVersion))
	cms.make(ctx, "last")
	t.Expect(brief(events.take(ctx, 1))).To(gomega.Equal([]string{"ADDED last"}))
}

// k8s.io/apiserver/pkg/registry/generic/registry/store.go, Create.
func secondCreateAlreadyExists(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	first := cms.make(ctx, "a")
	_, err := cms.Create(ctx, cms.object("a", "second"), metav1.CreateOptions{})
	t.Expect(err).To(beStatus(http.StatusConflict, metav1.StatusReasonAlreadyExists))
	t.Expect(cms.read(ctx, "a").ResourceVersion).To(gomega.Equal(first.ResourceVersion))
}

// k8s.io/apiserver/pkg/storage/names/generate.go.
func generatedNamesDiffer(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	seen := map[string]bool{}
	for range 5 {
		object := cms.object("", "first")
		object.GenerateName = "generated-"
		created, err := cms.Create(ctx, object, metav1.CreateOptions{})
		t.Expect(err).NotTo(gomega.HaveOccurred())
		t.Expect(created.Name).To(gomega.MatchRegexp(`^generated-[a-z0-9]{5}$`))
		seen[created.Name] = true
	}
	t.Expect(seen).To(gomega.HaveLen(5))
}

// k8s.io/apiserver/pkg/registry/generic/registry/dryrun.go.
func dryRunLeavesNothing(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	kept := cms.make(ctx, "kept")
	events := t.watch(ctx, cms.Watch, cms.mine(from(kept.ResourceVersion)))
	dry := []string{metav1.DryRunAll}

	t.Expect(cms.Create(ctx, cms.object("imagined", "first"), metav1.CreateOptions{DryRun: dry})).To(gomega.HaveField("UID", gomega.Not(gomega.BeEmpty())))
	_, err := cms.Get(ctx, "imagined", metav1.GetOptions{})
	t.Expect(err).To(beStatus(http.StatusNotFound, metav1.StatusReasonNotFound))

	change := cms.object("kept", "second")
	t.Expect(cms.Update(ctx, change, metav1.UpdateOptions{DryRun: dry})).To(gomega.HaveField("Data", change.Data))
	t.Expect(cms.Delete(ctx, "kept", metav1.DeleteOptions{DryRun: dry})).To(gomega.Succeed())
	t.Expect(cms.read(ctx, "kept")).To(gomega.Equal(kept))

	_, err = cms.Create(ctx, change, metav1.CreateOptions{DryRun: dry})
	t.Expect(err).To(beStatus(http.StatusConflict, metav1.StatusReasonAlreadyExists), "a dry run is refused as a real one is")
	cms.make(ctx, "last")
	t.Expect(brief(events.take(ctx, 1))).To(gomega.Equal([]string{"ADDED last"}))
}

// k8s.io/apiserver/pkg/storage/interfaces.go, Preconditions.Check.
func deletePreconditionsHold(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	old := cms.make(ctx, "a")
	current := cms.change(ctx, "a", "second")
	other := types.UID("00000000-0000-0000-0000-000000000000")
	for _, wrong := range []metav1.Preconditions{{UID: &other}, {ResourceVersion: &old.ResourceVersion}} {
		err := cms.Delete(ctx, "a", metav1.DeleteOptions{Preconditions: &wrong})
		t.Expect(err).To(beStatus(http.StatusConflict, metav1.StatusReasonConflict))
	}
	right := metav1.Preconditions{UID: &current.UID, ResourceVersion: &current.ResourceVersion}
	t.Expect(cms.Delete(ctx, "a", metav1.DeleteOptions{Preconditions: &right})).To(gomega.Succeed())
}

// k8s.io/apiserver/pkg/registry/generic/registry/store.go, DeleteCollection.
func deleteCollectionDeletesTheSelected(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	cms.makeColored(ctx, map[string]string{"a": "red", "b": "blue", "c": "red"})
	start := cms.list(ctx, cms.mine()).ResourceVersion
	events := t.watch(ctx, cms.Watch, cms.mine(from(start)))
	red := cms.mine(func(opts *metav1.ListOptions) { opts.LabelSelector += ",color=red" })
	t.Expect(cms.DeleteCollection(ctx, metav1.DeleteOptions{}, red)).To(gomega.Succeed())
	t.Expect(brief(events.take(ctx, 2))).To(gomega.ConsistOf("DELETED a", "DELETED c"))
	t.Expect(names(cms.list(ctx, cms.mine()))).To(gomega.Equal([]string{"b"}))
}

// k8s.io/apiserver/pkg/endpoints/handlers/patch.go, jsonPatcher.
func jsonPatchTestsFirst(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	created := cms.make(ctx, "a")
	patch := func(tested string) (*corev1.ConfigMap, error) {
		body := fmt.Sprintf(`[{"op":"add","path":"/data/added","value":"x"},{"op":"test","path":"/data/content","value":%q}]`, tested)
		return cms.Patch(ctx, "a", types.JSONPatchType, []byte(body), metav1.PatchOptions{})
	}
	_, err := patch("something else")
	t.Expect(err).To(beStatus(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid))
	t.Expect(cms.read(ctx, "a")).To(gomega.Equal(created))
	t.Expect(patch("first")).To(gomega.HaveField("Data", map[string]string{"content": "first", "added": "x"}))
}

// k8s.io/apiserver/pkg/endpoints/handlers/patch.go, mergePatcher: RFC 7386.
func mergePatchRemovesWithNull(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	object := cms.object("a", "first")
	object.Data["other"] = "stays"
	cms.create(ctx, object)
	t.Expect(cms.merge(ctx, "a", `{"data":{"content":null,"new":"x"}}`)).To(gomega.And(
		gomega.HaveField("Data", map[string]string{"other": "stays", "new": "x"}), gomega.HaveField("Labels", gomega.HaveKey(caseLabel))))
}

// k8s.io/apimachinery/pkg/util/strategicpatch: ownerReferences merge by uid.
func strategicMergePatchMergesLists(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	owner := cms.make(ctx, "owner")
	object := cms.object("a", "first")
	object.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID}}
	cms.create(ctx, object)
	second := cms.make(ctx, "second")
	patch := func(format string, uid types.UID) (*corev1.ConfigMap, error) {
		return cms.Patch(ctx, "a", types.StrategicMergePatchType, fmt.Appendf(nil, format, uid), metav1.PatchOptions{})
	}
	t.Expect(patch(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"second","uid":%q}]}}`, second.UID)).To(
		gomega.HaveField("OwnerReferences", gomega.ConsistOf(gomega.HaveField("Name", "owner"), gomega.HaveField("Name", "second"))))
	t.Expect(patch(`{"metadata":{"ownerReferences":[{"$patch":"delete","uid":%q}]}}`, owner.UID)).To(
		gomega.HaveField("OwnerReferences", gomega.ConsistOf(gomega.HaveField("Name", "second"))))
}

// apply applies content server-side as a field manager.
func (c *configMaps) apply(ctx context.Context, name, manager string, force bool, data map[string]string) (*corev1.ConfigMap, error) {
	object := c.object(name, "")
	object.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
	object.Data = data
	body, err := json.Marshal(object)
	c.target.must(err, "encode ConfigMap %s", name)
	return c.Patch(ctx, name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: manager, Force: &force})
}

// k8s.io/apimachinery/pkg/util/managedfields/internal/conflict.go.
func applyConflictsNameTheManager(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	_, err := cms.apply(ctx, "a", "alice", false, map[string]string{"content": "alice's"})
	t.Expect(err).NotTo(gomega.HaveOccurred(), "apply creates")
	_, err = cms.apply(ctx, "a", "bob", false, map[string]string{"content": "bob's"})
	t.Expect(err).To(beStatus(http.StatusConflict, metav1.StatusReasonConflict))
	t.Expect(err.Error()).To(gomega.And(gomega.ContainSubstring(`"alice"`), gomega.ContainSubstring(".data.content")))
	t.Expect(statusOf(err).Details.Causes).To(gomega.ConsistOf(gomega.HaveField("Type", metav1.CauseTypeFieldManagerConflict)))
	taken, err := cms.apply(ctx, "a", "bob", true, map[string]string{"content": "bob's"})
	t.Expect(err).NotTo(gomega.HaveOccurred())
	t.Expect(taken.Data["content"]).To(gomega.Equal("bob's"))
	t.Expect(managersOf(taken, "f:content")).To(gomega.Equal([]string{"bob"}))
}

// managersOf returns the managers that own a field of data.
func managersOf(object *corev1.ConfigMap, field string) []string {
	var found []string
	for _, entry := range object.ManagedFields {
		if strings.Contains(string(entry.FieldsV1.Raw), `"`+field+`"`) {
			found = append(found, entry.Manager)
		}
	}
	slices.Sort(found)
	return found
}

// sigs.k8s.io/structured-merge-diff/v6/merge/update.go, prune.
func applyRemovesWhatItNoLongerNames(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	_, err := cms.apply(ctx, "a", "alice", false, map[string]string{"own": "x", "shared": "x", "kept": "x"})
	t.must(err, "apply as alice")
	shared, err := cms.apply(ctx, "a", "bob", false, map[string]string{"shared": "x"})
	t.Expect(err).NotTo(gomega.HaveOccurred(), "equal values do not conflict")
	t.Expect(managersOf(shared, "f:shared")).To(gomega.Equal([]string{"alice", "bob"}))
	left, err := cms.apply(ctx, "a", "alice", false, map[string]string{"kept": "x"})
	t.Expect(err).NotTo(gomega.HaveOccurred())
	t.Expect(left.Data).To(gomega.Equal(map[string]string{"shared": "x", "kept": "x"}))
	t.Expect(managersOf(left, "f:shared")).To(gomega.Equal([]string{"bob"}))
}

// k8s.io/kubernetes/pkg/apis/core/validation/validation.go, ValidateConfigMapUpdate.
func immutableMeansImmutable(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	cms.make(ctx, "a")
	_, err := cms.merge(ctx, "a", `{"immutable":true}`)
	t.must(err, "make ConfigMap a immutable")
	for patch, field := range map[string]string{`{"data":{"content":"second"}}`: "data", `{"immutable":false}`: "immutable"} {
		_, err := cms.merge(ctx, "a", patch)
		t.Expect(t.causes(err)).To(gomega.Equal([]string{field}), patch)
	}
	t.Expect(cms.merge(ctx, "a", `{"metadata":{"labels":{"still":"possible"}}}`)).To(gomega.HaveField("Labels", gomega.HaveKey("still")))
}

// k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle.
func noObjectWithoutItsNamespace(ctx context.Context, t *Target) {
	missing := t.Name + "-missing"
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	_, err := t.kube.CoreV1().ConfigMaps(missing).Create(ctx, object, metav1.CreateOptions{})
	t.Expect(err).To(beStatus(http.StatusNotFound, metav1.StatusReasonNotFound))
	t.Expect(err.Error()).To(gomega.ContainSubstring(missing))
}
