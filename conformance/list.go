package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var listCases = []Case{
	{ID: "S6/list-sees-every-write-before-it", Test: listSeesEveryWrite,
		Promise: "A list without a resourceVersion shows every write that was answered before it, and so does a get."},
	{ID: "S6/list-is-no-older-than-its-items", Test: listIsNoOlderThanItsItems,
		Promise: "A list's resourceVersion is at least that of each of its items, and never decreases."},
	{ID: "S12/pages-show-one-moment", Test: pagesShowOneMoment,
		Promise: "All pages of a limited list show the collection as of the first page, with its resourceVersion, whatever is written meanwhile."},
	{ID: "S12/remaining-items-are-counted", Test: remainingItemsAreCounted,
		Promise: "remainingItemCount is the number of items on later pages; the last page, and a list with a selector, have none."},
	{ID: "S12/broken-continue-token-is-refused", Test: brokenContinueTokenIsRefused,
		Promise: "A continue token that the server did not make is refused with 400."},
	{ID: "S6/exact-version-is-exact", Test: exactVersionIsExact,
		Promise: "resourceVersionMatch=Exact shows the collection at that resourceVersion, not before and not after."},
	{ID: "S6/not-older-than-is-not-older", Test: notOlderThanIsNotOlder,
		Promise: "resourceVersionMatch=NotOlderThan shows at least the state of that resourceVersion, even one that was just written."},
	{ID: "S6/future-version-times-out", Test: futureVersionTimesOut,
		Promise: "A list that must be no older than a future resourceVersion is answered 504 with the cause ResourceVersionTooLarge."},
	{ID: "S6/version-match-must-be-asked-right", Test: versionMatchMustBeAskedRight,
		Promise: "resourceVersionMatch without a resourceVersion, with 0 and Exact, or with an unknown value is refused with 422, as is sendInitialEvents on a list."},
	{ID: "S12/field-selectors-select", Test: fieldSelectorsSelect,
		Promise: "Field selectors support metadata.name, metadata.namespace and the resource's own fields; any other field is refused with 400."},
	{ID: "S12/label-selectors-select", Test: labelSelectorsSelect,
		Promise: "Label selectors support equality, sets, presence and absence; a malformed one is refused with 400."},
	{ID: "S12/list-as-table", Test: listAsTable,
		Promise: "A list requested as a Table has columns and one row for each object, with the object's metadata, the whole object or nothing, as includeObject says."},
	{ID: "S12/list-as-metadata", Test: listAsMetadata,
		Promise: "A list requested as a PartialObjectMetadataList has the metadata of each object and nothing else."},
}

// k8s.io/apiserver/pkg/storage/cacher/delegator.go: KEP-2340, consistent reads.
func listSeesEveryWrite(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	for i := range 20 {
		name := fmt.Sprintf("n%02d", i)
		written := cms.make(ctx, name)
		list := cms.list(ctx, cms.mine())
		t.Expect(names(list)).To(gomega.ContainElement(name), "after write %d", i)
		t.Expect(t.number(list.ResourceVersion)).To(gomega.BeNumerically(">=", t.number(written.ResourceVersion)))
		changed := cms.change(ctx, name, "second")
		t.Expect(cms.read(ctx, name).ResourceVersion).To(gomega.Equal(changed.ResourceVersion))
		if i%2 == 1 {
			cms.remove(ctx, name)
			t.Expect(names(cms.list(ctx, cms.mine()))).NotTo(gomega.ContainElement(name), "after deletion %d", i)
		}
	}
}

// k8s.io/apiserver/pkg/storage/etcd3/store.go, GetList.
func listIsNoOlderThanItsItems(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	last := uint64(0)
	for i := range 5 {
		cms.make(ctx, "n"+strconv.Itoa(i))
		for _, version := range []string{"", "0"} {
			list := cms.list(ctx, cms.mine(from(version)))
			for _, item := range list.Items {
				t.Expect(t.number(list.ResourceVersion)).To(gomega.BeNumerically(">=", t.number(item.ResourceVersion)), "at %q", version)
			}
			if version == "" {
				t.Expect(t.number(list.ResourceVersion)).To(gomega.BeNumerically(">=", last), "the collection went back")
				last = t.number(list.ResourceVersion)
			}
		}
	}
}

func limited(size int64, token string) func(*metav1.ListOptions) {
	return func(opts *metav1.ListOptions) { opts.Limit, opts.Continue = size, token }
}

// k8s.io/apiserver/pkg/storage/continue.go and etcd3/store.go, GetList.
func pagesShowOneMoment(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	cms.make(ctx, "a", "b", "c", "d", "e", "f", "g")
	page := cms.list(ctx, cms.mine(limited(3, "")))
	first, found := page.ResourceVersion, names(page)
	t.Expect(found).To(gomega.Equal([]string{"a", "b", "c"}))
	cms.make(ctx, "bb", "dd", "z")
	cms.remove(ctx, "e")
	cms.change(ctx, "f", "second")
	for range 2 {
		t.Expect(page.Continue).NotTo(gomega.BeEmpty())
		page = cms.list(ctx, cms.mine(limited(3, page.Continue)))
		t.Expect(page.ResourceVersion).To(gomega.Equal(first))
		found = append(found, names(page)...)
		t.Expect(page.Items).To(gomega.HaveEach(gomega.HaveField("Data", gomega.HaveKeyWithValue("content", "first"))))
	}
	t.Expect(page.Continue).To(gomega.BeEmpty())
	t.Expect(found).To(gomega.Equal([]string{"a", "b", "c", "d", "e", "f", "g"}))
	t.Expect(names(cms.list(ctx, cms.mine()))).To(gomega.Equal([]string{"a", "b", "bb", "c", "d", "dd", "f", "g", "z"}))
}

// k8s.io/apiserver/pkg/storage/continue.go, PrepareContinueToken. Leases,
// because nothing else creates any in a fresh namespace.
func remainingItemsAreCounted(ctx context.Context, t *Target) {
	leases := t.kube.CoordinationV1().Leases(t.Namespace(ctx))
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"all": "yes"}}}
		_, err := leases.Create(ctx, lease, metav1.CreateOptions{})
		t.must(err, "create Lease %s", name)
	}
	var counts []string
	token := ""
	for range 3 {
		page, err := leases.List(ctx, metav1.ListOptions{Limit: 2, Continue: token})
		t.must(err, "list Leases")
		count := "none"
		if page.RemainingItemCount != nil {
			count = strconv.FormatInt(*page.RemainingItemCount, 10)
		}
		counts = append(counts, fmt.Sprint(len(page.Items), " then ", count))
		token = page.Continue
	}
	t.Expect(token).To(gomega.BeEmpty())
	t.Expect(counts).To(gomega.Equal([]string{"2 then 3", "2 then 1", "1 then none"}))
	selected, err := leases.List(ctx, metav1.ListOptions{Limit: 2, LabelSelector: "all=yes"})
	t.must(err, "list Leases by label")
	t.Expect(selected.Continue).NotTo(gomega.BeEmpty())
	t.Expect(selected.RemainingItemCount).To(gomega.BeNil())
}

// k8s.io/apiserver/pkg/storage/continue.go, DecodeContinue.
func brokenContinueTokenIsRefused(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	_, err := cms.List(ctx, cms.mine(limited(1, "no-such-token")))
	t.Expect(err).To(beStatus(http.StatusBadRequest, metav1.StatusReasonBadRequest))
}

// match asks for the state at or since a resourceVersion.
func match(kind metav1.ResourceVersionMatch, version string) func(*metav1.ListOptions) {
	return func(opts *metav1.ListOptions) { opts.ResourceVersionMatch, opts.ResourceVersion = kind, version }
}

// k8s.io/apiserver/pkg/storage/cacher/delegator.go and etcd3/store.go, GetList.
func exactVersionIsExact(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	moments := map[string][]string{cms.make(ctx, "a").ResourceVersion: {"a"}, cms.make(ctx, "b").ResourceVersion: {"a", "b"}}
	cms.remove(ctx, "a")
	moments[cms.list(ctx, cms.mine()).ResourceVersion] = []string{"b"}
	moments[cms.make(ctx, "c").ResourceVersion] = []string{"b", "c"}
	cms.change(ctx, "b", "second")
	for version, want := range moments {
		list := cms.list(ctx, cms.mine(match(metav1.ResourceVersionMatchExact, version)))
		t.Expect(list.ResourceVersion).To(gomega.Equal(version))
		t.Expect(names(list)).To(gomega.Equal(want), "at %s", version)
		t.Expect(list.Items).To(gomega.HaveEach(gomega.HaveField("Data", gomega.HaveKeyWithValue("content", "first"))), "at %s", version)
	}
}

// k8s.io/apiserver/pkg/storage/cacher/watch_cache.go, waitUntilFreshAndBlock.
func notOlderThanIsNotOlder(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	for i := range 10 {
		name := "n" + strconv.Itoa(i)
		written := cms.make(ctx, name)
		list := cms.list(ctx, cms.mine(match(metav1.ResourceVersionMatchNotOlderThan, written.ResourceVersion)))
		t.Expect(names(list)).To(gomega.ContainElement(name))
		t.Expect(t.number(list.ResourceVersion)).To(gomega.BeNumerically(">=", t.number(written.ResourceVersion)))
		t.Expect(cms.Get(ctx, name, metav1.GetOptions{ResourceVersion: written.ResourceVersion})).To(gomega.HaveField("UID", written.UID))
	}
}

// k8s.io/apiserver/pkg/storage/errors.go, NewTooLargeResourceVersionError.
func futureVersionTimesOut(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	future := strconv.FormatUint(t.number(cms.list(ctx, cms.mine()).ResourceVersion)+1_000_000_000, 10)
	// A raw request, because clients retry after the time the server gives.
	got := t.get(ctx, cms.path()+"?resourceVersionMatch=NotOlderThan&resourceVersion="+future)
	status := t.expectStatus(got, http.StatusGatewayTimeout, metav1.StatusReasonTimeout)
	t.Expect(status.Details.Causes).To(gomega.ContainElement(gomega.HaveField("Type", metav1.CauseTypeResourceVersionTooLarge)), "%s", got)
	t.Expect(status.Details.RetryAfterSeconds).To(gomega.BeNumerically(">", 0), "%s", got)
}

// k8s.io/apimachinery/pkg/apis/meta/internalversion/validation.
func versionMatchMustBeAskedRight(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	cms.refuses(ctx,
		"resourceVersionMatch=Exact",
		"resourceVersionMatch=Exact&resourceVersion=0",
		"resourceVersionMatch=Roughly&resourceVersion=1",
		"sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=1")
}

// k8s.io/kubernetes/pkg/apis/core/v1/conversion.go, AddFieldLabelConversionsFor*.
func fieldSelectorsSelect(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	cms.make(ctx, "a", "b", "c")
	everywhere := t.kube.CoreV1().ConfigMaps(metav1.NamespaceAll)
	for selector, want := range map[string][]string{
		"metadata.name=b":                                     {"b"},
		"metadata.name!=b":                                    {"a", "c"},
		"metadata.name=b,metadata.name!=b":                    {},
		"metadata.namespace=" + cms.namespace:                 {"a", "b", "c"},
		"metadata.namespace!=" + cms.namespace:                {},
		"metadata.name=a,metadata.namespace=" + cms.namespace: {"a"},
	} {
		list, err := everywhere.List(ctx, cms.mine(func(opts *metav1.ListOptions) { opts.FieldSelector = selector }))
		t.Expect(err).NotTo(gomega.HaveOccurred(), selector)
		t.Expect(names(list)).To(gomega.Equal(want), selector)
	}
	_, err := cms.List(ctx, metav1.ListOptions{FieldSelector: "data.content=first"})
	t.Expect(err).To(beStatus(http.StatusBadRequest, metav1.StatusReasonBadRequest))
	active := metav1.ListOptions{FieldSelector: "status.phase=Active,metadata.name=" + cms.namespace}
	t.Expect(t.kube.CoreV1().Namespaces().List(ctx, active)).To(gomega.HaveField("Items", gomega.HaveLen(1)))
}

// k8s.io/apimachinery/pkg/labels/selector.go.
func labelSelectorsSelect(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	cms.makeColored(ctx, map[string]string{"a": "red", "b": "blue", "c": "green"})
	cms.make(ctx, "d")
	for selector, want := range map[string][]string{
		"color=red":               {"a"},
		"color!=red":              {"b", "c", "d"},
		"color in (red,blue)":     {"a", "b"},
		"color notin (red,blue)":  {"c", "d"},
		"color":                   {"a", "b", "c"},
		"!color":                  {"d"},
		"color,color!=red":        {"b", "c"},
		"color in (red),color!=x": {"a"},
	} {
		list := cms.list(ctx, cms.mine(func(opts *metav1.ListOptions) { opts.LabelSelector += "," + selector }))
		t.Expect(names(list)).To(gomega.Equal(want), selector)
	}
	_, err := cms.List(ctx, metav1.ListOptions{LabelSelector: "color in red"})
	t.Expect(err).To(beStatus(http.StatusBadRequest, metav1.StatusReasonBadRequest))
}

// k8s.io/apiserver/pkg/endpoints/handlers/response.go, asTable.
func listAsTable(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	cms.make(ctx, "a", "b")
	path := cms.path() + "?labelSelector=" + cms.mine().LabelSelector + "&includeObject="
	for include, kind := range map[string]string{"": "PartialObjectMetadata", "Metadata": "PartialObjectMetadata", "Object": "ConfigMap", "None": ""} {
		var found metav1.Table
		t.json(t.ask(ctx, request{path: path + include, accept: tableType}), &found)
		t.Expect(found.Kind).To(gomega.Equal("Table"))
		t.Expect(found.ResourceVersion).NotTo(gomega.BeEmpty())
		at := slices.IndexFunc(found.ColumnDefinitions, func(c metav1.TableColumnDefinition) bool { return c.Name == "Name" })
		t.Expect(at).To(gomega.BeNumerically(">=", 0), "no column Name")
		t.Expect(found.Rows).To(gomega.HaveLen(2))
		for i, row := range found.Rows {
			t.Expect(row.Cells).To(gomega.HaveLen(len(found.ColumnDefinitions)))
			t.Expect(row.Cells[at]).To(gomega.Equal([]any{"a", "b"}[i]))
			t.Expect(kindOf(row.Object.Raw)).To(gomega.Equal(kind), "includeObject=%s", include)
		}
	}
}

// k8s.io/apiserver/pkg/endpoints/handlers/response.go, asPartialObjectMetadataList.
func listAsMetadata(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	cms.make(ctx, "a", "b")
	got := t.ask(ctx, request{
		path:   cms.path() + "?labelSelector=" + cms.mine().LabelSelector,
		accept: "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
	})
	var list struct {
		Kind  string
		Items []struct {
			Kind     string
			Metadata metav1.ObjectMeta
			Data     map[string]string
		}
	}
	t.json(got, &list)
	t.Expect(list.Kind).To(gomega.Equal("PartialObjectMetadataList"))
	t.Expect(list.Items).To(gomega.HaveLen(2))
	for i, item := range list.Items {
		t.Expect(item.Metadata.Name).To(gomega.Equal([]string{"a", "b"}[i]))
		t.Expect(item.Metadata.UID).NotTo(gomega.BeEmpty())
		t.Expect(item.Data).To(gomega.BeEmpty())
	}
}

// kindOf returns the kind of an encoded object, empty if there is none.
func kindOf(object []byte) string {
	var meta metav1.TypeMeta
	_ = json.Unmarshal(object, &meta) // there may be none
	return meta.Kind
}
