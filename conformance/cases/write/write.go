// Package write has the cases about writing objects: conflicts, patches, dry runs, validation,
// and what a refusal leaves behind, which is nothing.
package write

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"snowglobe.test/conformance/suite"
)

// Cases are the cases of this area.
var Cases = slices.Concat([]suite.Case{
	{ID: "S12/stale-update-conflicts", Level: suite.Core, Failure: true, Test: staleUpdateConflicts,
		Source: "k8s.io/apiserver/pkg/registry/generic/registry/store.go, Update",
		Promise: "An update that carries an old resourceVersion is refused with 409 Conflict and changes nothing; " +
			"one that carries none is not checked."},
	{ID: "S12/update-of-another-uid-conflicts", Level: suite.Core, Failure: true, Test: updateOfAnotherUIDConflicts,
		Source: "k8s.io/apiserver/pkg/registry/rest/update.go, DefaultUpdatedObjectInfo.Preconditions; " +
			"k8s.io/apimachinery/pkg/api/validation/objectmeta.go, ValidateObjectMetaAccessorUpdate",
		Promise: "An update that names another uid than the object's is refused with 409, a patch with 422, and " +
			"nothing is changed; one that names its uid, or none, is done."},
	{ID: "S12/update-without-change-is-no-write", Level: suite.Core, Test: updateWithoutChangeIsNoWrite,
		Source:  "k8s.io/apiserver/pkg/storage/etcd3/store.go, GuaranteedUpdate: the short cut for equal bytes",
		Promise: "An update that changes nothing keeps the resourceVersion and causes no event."},
	{ID: "S12/second-create-already-exists", Level: suite.Core, Failure: true, Test: secondCreateAlreadyExists,
		Source:  "k8s.io/apiserver/pkg/registry/generic/registry/store.go, Create",
		Promise: "Creating a name that is taken is refused with 409 AlreadyExists and leaves the first object alone."},
	{ID: "S12/generated-names-differ", Level: suite.Core, Test: generatedNamesDiffer,
		Source:  "k8s.io/apiserver/pkg/storage/names/generate.go",
		Promise: "generateName gives each object a name of its own with that prefix."},
	{ID: "S12/dry-run-leaves-nothing", Level: suite.Core, Test: dryRunLeavesNothing,
		Source: "k8s.io/apiserver/pkg/registry/generic/registry/dryrun.go",
		Promise: "dryRun=All answers creates, updates and deletions as if they had been done, and leaves neither " +
			"object nor event."},
	{ID: "S12/delete-preconditions-hold", Level: suite.Core, Failure: true, Test: deletePreconditionsHold,
		Source: "k8s.io/apiserver/pkg/storage/interfaces.go, Preconditions.Check",
		Promise: "A deletion with the precondition of another UID or resourceVersion is refused with 409; one with " +
			"the right ones succeeds."},
	{ID: "S12/delete-collection-deletes-the-selected", Level: suite.Core, Test: deleteCollectionDeletesTheSelected,
		Source:  "k8s.io/apiserver/pkg/registry/generic/registry/store.go, DeleteCollection",
		Promise: "Deleting a collection with a selector deletes what it selects and nothing else."},
	{ID: "S12/json-patch-tests-first", Level: suite.Core, Failure: true, Test: jsonPatchTestsFirst,
		Source:  "k8s.io/apiserver/pkg/endpoints/handlers/patch.go, jsonPatcher",
		Promise: "A JSON patch is applied whole or, if one of its tests fails, not at all."},
	{ID: "S12/merge-patch-removes-with-null", Level: suite.Core, Test: mergePatchRemovesWithNull,
		Source:  "k8s.io/apiserver/pkg/endpoints/handlers/patch.go, mergePatcher: RFC 7386",
		Promise: "A merge patch sets what it names, removes what it names with null, and leaves the rest."},
	{ID: "S12/strategic-merge-patch-merges-lists", Level: suite.Core, Test: strategicMergePatchMergesLists,
		Source:  "k8s.io/apimachinery/pkg/util/strategicpatch: ownerReferences merge by uid",
		Promise: "A strategic merge patch of a built-in type merges a keyed list by its key."},
	{ID: "S12/apply-conflicts-name-the-manager", Level: suite.Core, Failure: true, Test: applyConflictsNameTheManager,
		Source: "k8s.io/apimachinery/pkg/util/managedfields/internal/conflict.go",
		Promise: "Server-side apply of a field that another manager owns is refused with a 409 that names the " +
			"manager and the field; with force it takes the field over."},
	{ID: "S12/apply-removes-what-it-no-longer-names", Level: suite.Core, Test: applyRemovesWhatItNoLongerNames,
		Source:  "sigs.k8s.io/structured-merge-diff/v6/merge/update.go, prune",
		Promise: "A field that a manager stops applying is removed, unless another manager owns it too."},
	{ID: "S12/immutable-means-immutable", Level: suite.Core, Failure: true, Test: immutableMeansImmutable,
		Source: "k8s.io/kubernetes/pkg/apis/core/validation/validation.go, ValidateConfigMapUpdate",
		Promise: "Neither the content of an immutable ConfigMap nor its immutable field can be changed: 422 that " +
			"names the field."},
	{ID: "S9/no-object-without-its-namespace", Level: suite.Core, Failure: true, Test: noObjectWithoutItsNamespace,
		Source:  "k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle",
		Promise: "An object can't be created in a namespace that does not exist: 404 that names the namespace."},
}, strictCases, gatedCases)

func staleUpdateConflicts(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	first := cms.Make(ctx, "a")
	cms.Change(ctx, "a", "second")
	stale := first.DeepCopy()
	stale.Data["content"] = "stale"
	t.Expect(suite.ErrorOf(cms.Update(ctx, stale, metav1.UpdateOptions{}))).To(suite.BeStatus(suite.Conflict))
	t.Expect(cms.Read(ctx, "a").Data["content"]).To(gomega.Equal("second"))
	stale.ResourceVersion = ""
	t.Expect(cms.Update(ctx, stale, metav1.UpdateOptions{})).To(gomega.HaveField("Data", stale.Data))
}

func updateOfAnotherUIDConflicts(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	before := cms.Make(ctx, "a")
	cms.Remove(ctx, "a")
	now := cms.Make(ctx, "a")
	other := cms.Object("a", "second")
	other.UID = before.UID
	_, err := cms.Update(ctx, other, metav1.UpdateOptions{})
	t.Expect(err).To(suite.BeStatus(suite.Conflict))
	t.Expect(err.Error()).To(gomega.And(gomega.ContainSubstring(string(before.UID)),
		gomega.ContainSubstring(string(now.UID))))
	_, err = cms.Merge(ctx, "a", fmt.Sprintf(`{"metadata":{"uid":%q},"data":{"content":"second"}}`, before.UID))
	t.Expect(t.Causes(err)).To(gomega.Equal([]string{"metadata.uid"}))
	t.Expect(cms.Read(ctx, "a")).To(gomega.Equal(now), "after what was refused")
	other.UID = now.UID
	t.Expect(cms.Update(ctx, other, metav1.UpdateOptions{})).To(gomega.HaveField("UID", now.UID))
	other.UID = ""
	t.Expect(cms.Update(ctx, other, metav1.UpdateOptions{})).To(gomega.HaveField("UID", now.UID))
}

func updateWithoutChangeIsNoWrite(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	created := cms.Make(ctx, "a")
	events := t.Watch(ctx, cms.Watch, cms.Mine(suite.From(created.ResourceVersion)))
	t.Expect(cms.Update(ctx, created, metav1.UpdateOptions{})).
		To(gomega.HaveField("ResourceVersion", created.ResourceVersion))
	cms.Make(ctx, "last")
	t.Expect(suite.Brief(events.Take(ctx, 1))).To(gomega.Equal([]string{"ADDED last"}))
}

func secondCreateAlreadyExists(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	first := cms.Make(ctx, "a")
	_, err := cms.Create(ctx, cms.Object("a", "second"), metav1.CreateOptions{})
	t.Expect(err).To(suite.BeStatus(suite.AlreadyExists))
	t.Expect(cms.Read(ctx, "a").ResourceVersion).To(gomega.Equal(first.ResourceVersion))
}

func generatedNamesDiffer(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	seen := map[string]bool{}
	for range 5 {
		object := cms.Object("", "first")
		object.GenerateName = "generated-"
		created, err := cms.Create(ctx, object, metav1.CreateOptions{})
		t.Expect(err).NotTo(gomega.HaveOccurred())
		t.Expect(created.Name).To(gomega.MatchRegexp(`^generated-[a-z0-9]{5}$`))
		seen[created.Name] = true
	}
	t.Expect(seen).To(gomega.HaveLen(5))
}

func dryRunLeavesNothing(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	kept := cms.Make(ctx, "kept")
	events := t.Watch(ctx, cms.Watch, cms.Mine(suite.From(kept.ResourceVersion)))
	dry := []string{metav1.DryRunAll}

	t.Expect(cms.Create(ctx, cms.Object("imagined", "first"), metav1.CreateOptions{DryRun: dry})).
		To(gomega.HaveField("UID", gomega.Not(gomega.BeEmpty())))
	_, err := cms.Get(ctx, "imagined", metav1.GetOptions{})
	t.Expect(err).To(suite.BeStatus(suite.NotFound))

	change := cms.Object("kept", "second")
	t.Expect(cms.Update(ctx, change, metav1.UpdateOptions{DryRun: dry})).To(gomega.HaveField("Data", change.Data))
	t.Expect(cms.Delete(ctx, "kept", metav1.DeleteOptions{DryRun: dry})).To(gomega.Succeed())
	t.Expect(cms.Read(ctx, "kept")).To(gomega.Equal(kept))

	_, err = cms.Create(ctx, change, metav1.CreateOptions{DryRun: dry})
	t.Expect(err).To(suite.BeStatus(suite.AlreadyExists), "a dry run is refused as a real one is")
	cms.Make(ctx, "last")
	t.Expect(suite.Brief(events.Take(ctx, 1))).To(gomega.Equal([]string{"ADDED last"}))
}

func deletePreconditionsHold(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	old := cms.Make(ctx, "a")
	current := cms.Change(ctx, "a", "second")
	other := types.UID("00000000-0000-0000-0000-000000000000")
	for _, wrong := range []metav1.Preconditions{{UID: &other}, {ResourceVersion: &old.ResourceVersion}} {
		err := cms.Delete(ctx, "a", metav1.DeleteOptions{Preconditions: &wrong})
		t.Expect(err).To(suite.BeStatus(suite.Conflict))
	}
	right := metav1.Preconditions{UID: &current.UID, ResourceVersion: &current.ResourceVersion}
	t.Expect(cms.Delete(ctx, "a", metav1.DeleteOptions{Preconditions: &right})).To(gomega.Succeed())
}

func deleteCollectionDeletesTheSelected(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	cms.MakeColored(ctx, map[string]string{"a": "red", "b": "blue", "c": "red"})
	start := cms.MustList(ctx, cms.Mine()).ResourceVersion
	events := t.Watch(ctx, cms.Watch, cms.Mine(suite.From(start)))
	red := cms.Mine(func(opts *metav1.ListOptions) { opts.LabelSelector += ",color=red" })
	t.Expect(cms.DeleteCollection(ctx, metav1.DeleteOptions{}, red)).To(gomega.Succeed())
	t.Expect(suite.Brief(events.Take(ctx, 2))).To(gomega.ConsistOf("DELETED a", "DELETED c"))
	t.Expect(suite.Names(cms.MustList(ctx, cms.Mine()))).To(gomega.Equal([]string{"b"}))
}

func jsonPatchTestsFirst(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	created := cms.Make(ctx, "a")
	patch := func(tested string) (*corev1.ConfigMap, error) {
		body := fmt.Sprintf(`[{"op":"add","path":"/data/added","value":"x"},{"op":"test","path":"/data/content",`+
			`"value":%q}]`, tested)
		return cms.Patch(ctx, "a", types.JSONPatchType, []byte(body), metav1.PatchOptions{})
	}
	t.Expect(suite.ErrorOf(patch("something else"))).To(suite.BeStatus(suite.Invalid))
	t.Expect(cms.Read(ctx, "a")).To(gomega.Equal(created))
	t.Expect(patch("first")).To(gomega.HaveField("Data", map[string]string{"content": "first", "added": "x"}))
}

func mergePatchRemovesWithNull(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	object := cms.Object("a", "first")
	object.Data["other"] = "stays"
	cms.MustCreate(ctx, object)
	t.Expect(cms.Merge(ctx, "a", `{"data":{"content":null,"new":"x"}}`)).To(gomega.And(
		gomega.HaveField("Data", map[string]string{"other": "stays", "new": "x"}), gomega.HaveField("Labels",
			gomega.HaveKey(suite.CaseLabel))))
}

func strategicMergePatchMergesLists(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	owner := cms.Make(ctx, "owner")
	object := cms.Object("a", "first")
	object.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner",
		UID: owner.UID}}
	cms.MustCreate(ctx, object)
	second := cms.Make(ctx, "second")
	patch := func(format string, uid types.UID) (*corev1.ConfigMap, error) {
		return cms.Patch(ctx, "a", types.StrategicMergePatchType, fmt.Appendf(nil, format, uid), metav1.PatchOptions{})
	}
	t.Expect(patch(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"second","uid":%q}]}}`,
		second.UID)).To(
		gomega.HaveField("OwnerReferences", gomega.ConsistOf(gomega.HaveField("Name", "owner"),
			gomega.HaveField("Name", "second"))))
	t.Expect(patch(`{"metadata":{"ownerReferences":[{"$patch":"delete","uid":%q}]}}`, owner.UID)).To(
		gomega.HaveField("OwnerReferences", gomega.ConsistOf(gomega.HaveField("Name", "second"))))
}

// apply applies content server-side as a field manager.
func apply(ctx context.Context, c *suite.ConfigMaps, name, manager string, force bool,
	data map[string]string) (*corev1.ConfigMap, error) {
	object := c.Object(name, "")
	object.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
	object.Data = data
	body, err := json.Marshal(object)
	c.T.Must(err, "encode ConfigMap %s", name)
	return c.Patch(ctx, name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: manager, Force: &force})
}

func applyConflictsNameTheManager(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	_, err := apply(ctx, cms, "a", "alice", false, map[string]string{"content": "alice's"})
	t.Expect(err).NotTo(gomega.HaveOccurred(), "apply creates")
	_, err = apply(ctx, cms, "a", "bob", false, map[string]string{"content": "bob's"})
	t.Expect(err).To(suite.BeStatus(suite.Conflict))
	t.Expect(err.Error()).To(gomega.And(gomega.ContainSubstring(`"alice"`), gomega.ContainSubstring(".data.content")))
	t.Expect(suite.StatusOf(err).Details.Causes).
		To(gomega.ConsistOf(gomega.HaveField("Type", metav1.CauseTypeFieldManagerConflict)))
	taken, err := apply(ctx, cms, "a", "bob", true, map[string]string{"content": "bob's"})
	t.Expect(err).NotTo(gomega.HaveOccurred())
	t.Expect(taken.Data["content"]).To(gomega.Equal("bob's"))
	t.Expect(suite.Owners(taken, "f:content")).To(gomega.Equal([]string{"bob Apply"}))
}

func applyRemovesWhatItNoLongerNames(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	_, err := apply(ctx, cms, "a", "alice", false, map[string]string{"own": "x", "shared": "x", "kept": "x"})
	t.Must(err, "apply as alice")
	shared, err := apply(ctx, cms, "a", "bob", false, map[string]string{"shared": "x"})
	t.Expect(err).NotTo(gomega.HaveOccurred(), "equal values do not conflict")
	t.Expect(suite.Owners(shared, "f:shared")).To(gomega.Equal([]string{"alice Apply", "bob Apply"}))
	left, err := apply(ctx, cms, "a", "alice", false, map[string]string{"kept": "x"})
	t.Expect(err).NotTo(gomega.HaveOccurred())
	t.Expect(left.Data).To(gomega.Equal(map[string]string{"shared": "x", "kept": "x"}))
	t.Expect(suite.Owners(left, "f:shared")).To(gomega.Equal([]string{"bob Apply"}))
}

func immutableMeansImmutable(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	cms.Make(ctx, "a")
	t.Must(suite.ErrorOf(cms.Merge(ctx, "a", `{"immutable":true}`)), "make ConfigMap a immutable")
	for patch, field := range map[string]string{`{"data":{"content":"second"}}`: "data",
		`{"immutable":false}`: "immutable"} {
		_, err := cms.Merge(ctx, "a", patch)
		t.Expect(t.Causes(err)).To(gomega.Equal([]string{field}), patch)
	}
	t.Expect(cms.Merge(ctx, "a", `{"metadata":{"labels":{"still":"possible"}}}`)).
		To(gomega.HaveField("Labels", gomega.HaveKey("still")))
}

func noObjectWithoutItsNamespace(ctx context.Context, t *suite.T) {
	missing := t.Name + "-missing"
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	_, err := t.Kube.CoreV1().ConfigMaps(missing).Create(ctx, object, metav1.CreateOptions{})
	t.Expect(err).To(suite.BeStatus(suite.NotFound))
	t.Expect(err.Error()).To(gomega.ContainSubstring(missing))
}
