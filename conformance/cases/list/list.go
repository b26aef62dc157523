// Package list has the cases about lists: versions, pages, selectors and forms. Rules
// that make the store fail or freeze a watch cache show which of the two has answered.
package list

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/conformance/suite"
)

// Cases are the cases of this area.
var Cases = slices.Concat([]suite.Case{
	{ID: "S6/list-sees-every-write-before-it", Level: suite.Core, Test: listSeesEveryWrite,
		Source:  "KEP-2340; k8s.io/apiserver/pkg/storage/cacher/delegator.go",
		Promise: "A list without a resourceVersion shows every write that was answered before it, and so does a get."},
	{ID: "S6/list-is-no-older-than-its-items", Level: suite.Core, Test: listIsNoOlderThanItsItems,
		Source:  "k8s.io/apiserver/pkg/storage/etcd3/store.go, GetList",
		Promise: "A list's resourceVersion is at least that of each of its items, and never decreases."},
	{ID: "S12/pages-show-one-moment", Level: suite.Core, Test: pagesShowOneMoment,
		Source: "k8s.io/apiserver/pkg/storage/continue.go; k8s.io/apiserver/pkg/storage/etcd3/store.go, GetList",
		Promise: "All pages of a limited list show the collection as of the first page, with its resourceVersion, " +
			"whatever is written meanwhile."},
	{ID: "S12/remaining-items-are-counted", Level: suite.Core, Test: remainingItemsAreCounted,
		Source: "k8s.io/apiserver/pkg/storage/continue.go, PrepareContinueToken",
		Promise: "remainingItemCount is the number of items on later pages; the last page, and a list with a " +
			"selector, have none."},
	{ID: "S12/broken-continue-token-is-refused", Level: suite.Core, Failure: true, Test: brokenContinueTokenIsRefused,
		Source:  "k8s.io/apiserver/pkg/storage/continue.go, DecodeContinue",
		Promise: "A continue token that the server did not make is refused with 400."},
	{ID: "S6/exact-version-is-exact", Level: suite.Core, Test: exactVersionIsExact,
		Source:  "k8s.io/apiserver/pkg/storage/cacher/delegator.go and etcd3/store.go, GetList",
		Promise: "resourceVersionMatch=Exact shows the collection at that resourceVersion, not before and not after."},
	{ID: "S6/not-older-than-is-not-older", Level: suite.Core, Test: notOlderThanIsNotOlder,
		Source: "k8s.io/apiserver/pkg/storage/cacher/watch_cache.go, WaitUntilFreshAndGetList",
		Promise: "resourceVersionMatch=NotOlderThan shows at least the state of that resourceVersion, even one that " +
			"was just written."},
	{ID: "S6/future-version-times-out", Failure: true, Test: futureVersionTimesOut,
		Source: "k8s.io/apiserver/pkg/storage/errors.go, NewTooLargeResourceVersionError",
		Promise: "A list that must be no older than a future resourceVersion is answered 504 with the cause " +
			"ResourceVersionTooLarge."},
	{ID: "S6/version-match-must-be-asked-right", Level: suite.Core, Failure: true, Test: versionMatchMustBeAskedRight,
		Source: "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation",
		Promise: "resourceVersionMatch without a resourceVersion, with 0 and Exact, or with an unknown value is " +
			"refused with 422, as is sendInitialEvents on a list."},
	{ID: "S12/field-selectors-select", Level: suite.Core, Test: fieldSelectorsSelect,
		Source: "k8s.io/kubernetes/pkg/apis/core/v1/conversion.go, AddFieldLabelConversionsFor*",
		Promise: "Field selectors support metadata.name, metadata.namespace and the resource's own fields; any other " +
			"field is refused with 400."},
	{ID: "S12/label-selectors-select", Level: suite.Core, Test: labelSelectorsSelect,
		Source:  "k8s.io/apimachinery/pkg/labels/selector.go",
		Promise: "Label selectors support equality, sets, presence and absence; a malformed one is refused with 400."},
	{ID: "S12/list-as-table", Level: suite.Core, Test: listAsTable,
		Source: "k8s.io/apiserver/pkg/endpoints/handlers/response.go, asTable",
		Promise: "A list requested as a Table has columns and one row for each object, with the object's metadata, " +
			"the whole object or nothing, as includeObject says."},
	{ID: "S12/list-as-metadata", Level: suite.Core, Test: listAsMetadata,
		Source:  "k8s.io/apiserver/pkg/endpoints/handlers/response.go, asPartialObjectMetadataList",
		Promise: "A list requested as a PartialObjectMetadataList has the metadata of each object and nothing else."},
}, cachedCases, streamedCases)

func listSeesEveryWrite(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	for i := range 20 {
		name := fmt.Sprintf("n%02d", i)
		written := cms.Make(ctx, name)
		list := cms.MustList(ctx, cms.Mine())
		t.Expect(suite.Names(list)).To(gomega.ContainElement(name), "after write %d", i)
		t.Expect(t.Number(list.ResourceVersion)).To(gomega.BeNumerically(">=", t.Number(written.ResourceVersion)))
		changed := cms.Change(ctx, name, "second")
		t.Expect(cms.Read(ctx, name).ResourceVersion).To(gomega.Equal(changed.ResourceVersion))
		if i%2 == 1 {
			cms.Remove(ctx, name)
			t.Expect(suite.Names(cms.MustList(ctx, cms.Mine()))).NotTo(gomega.ContainElement(name), "after deletion %d",
				i)
		}
	}
}

func listIsNoOlderThanItsItems(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	last := uint64(0)
	for i := range 5 {
		cms.Make(ctx, "n"+strconv.Itoa(i))
		for _, version := range []string{"", "0"} {
			list := cms.MustList(ctx, cms.Mine(suite.From(version)))
			for _, item := range list.Items {
				t.Expect(t.Number(list.ResourceVersion)).To(gomega.BeNumerically(">=", t.Number(item.ResourceVersion)),
					"at %q", version)
			}
			if version == "" {
				t.Expect(t.Number(list.ResourceVersion)).To(gomega.BeNumerically(">=", last),
					"the collection went back")
				last = t.Number(list.ResourceVersion)
			}
		}
	}
}

func limited(size int64, token string) func(*metav1.ListOptions) {
	return func(opts *metav1.ListOptions) { opts.Limit, opts.Continue = size, token }
}

func pagesShowOneMoment(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	cms.Make(ctx, "a", "b", "c", "d", "e", "f", "g")
	page := cms.MustList(ctx, cms.Mine(limited(3, "")))
	first, found := page.ResourceVersion, suite.Names(page)
	t.Expect(found).To(gomega.Equal([]string{"a", "b", "c"}))
	cms.Make(ctx, "bb", "dd", "z")
	cms.Remove(ctx, "e")
	cms.Change(ctx, "f", "second")
	for range 2 {
		t.Expect(page.Continue).NotTo(gomega.BeEmpty())
		page = cms.MustList(ctx, cms.Mine(limited(3, page.Continue)))
		t.Expect(page.ResourceVersion).To(gomega.Equal(first))
		found = append(found, suite.Names(page)...)
		t.Expect(page.Items).To(gomega.HaveEach(gomega.HaveField("Data", gomega.HaveKeyWithValue("content", "first"))))
	}
	t.Expect(page.Continue).To(gomega.BeEmpty())
	t.Expect(found).To(gomega.Equal([]string{"a", "b", "c", "d", "e", "f", "g"}))
	t.Expect(suite.Names(cms.MustList(ctx, cms.Mine()))).
		To(gomega.Equal([]string{"a", "b", "bb", "c", "d", "dd", "f", "g", "z"}))
}

// Leases, because nothing else creates any in a fresh namespace.
func remainingItemsAreCounted(ctx context.Context, t *suite.T) {
	leases := t.Kube.CoordinationV1().Leases(t.Namespace(ctx))
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{"all": "yes"}}}
		suite.Create(ctx, t, leases.Create, lease)
	}
	var counts []string
	token := ""
	for range 3 {
		page := suite.List(ctx, t, leases.List, metav1.ListOptions{Limit: 2, Continue: token})
		count := "none"
		if page.RemainingItemCount != nil {
			count = strconv.FormatInt(*page.RemainingItemCount, 10)
		}
		counts = append(counts, fmt.Sprint(len(page.Items), " then ", count))
		token = page.Continue
	}
	t.Expect(token).To(gomega.BeEmpty())
	t.Expect(counts).To(gomega.Equal([]string{"2 then 3", "2 then 1", "1 then none"}))
	selected := suite.List(ctx, t, leases.List, metav1.ListOptions{Limit: 2, LabelSelector: "all=yes"})
	t.Expect(selected.Continue).NotTo(gomega.BeEmpty())
	t.Expect(selected.RemainingItemCount).To(gomega.BeNil())
}

func brokenContinueTokenIsRefused(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	t.Expect(suite.ErrorOf(cms.List(ctx, cms.Mine(limited(1, "no-such-token"))))).To(suite.BeStatus(suite.BadRequest))
}

// match asks for the state at or since a resourceVersion.
func match(kind metav1.ResourceVersionMatch, version string) func(*metav1.ListOptions) {
	return func(opts *metav1.ListOptions) { opts.ResourceVersionMatch, opts.ResourceVersion = kind, version }
}

func exactVersionIsExact(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	moments := map[string][]string{cms.Make(ctx, "a").ResourceVersion: {"a"},
		cms.Make(ctx, "b").ResourceVersion: {"a", "b"}}
	cms.Remove(ctx, "a")
	moments[cms.MustList(ctx, cms.Mine()).ResourceVersion] = []string{"b"}
	moments[cms.Make(ctx, "c").ResourceVersion] = []string{"b", "c"}
	cms.Change(ctx, "b", "second")
	for version, want := range moments {
		list := cms.MustList(ctx, cms.Mine(match(metav1.ResourceVersionMatchExact, version)))
		t.Expect(list.ResourceVersion).To(gomega.Equal(version))
		t.Expect(suite.Names(list)).To(gomega.Equal(want), "at %s", version)
		t.Expect(list.Items).To(gomega.HaveEach(gomega.HaveField("Data", gomega.HaveKeyWithValue("content", "first"))),
			"at %s", version)
	}
}

func notOlderThanIsNotOlder(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	for i := range 10 {
		name := "n" + strconv.Itoa(i)
		written := cms.Make(ctx, name)
		list := cms.MustList(ctx, cms.Mine(match(metav1.ResourceVersionMatchNotOlderThan, written.ResourceVersion)))
		t.Expect(suite.Names(list)).To(gomega.ContainElement(name))
		t.Expect(t.Number(list.ResourceVersion)).To(gomega.BeNumerically(">=", t.Number(written.ResourceVersion)))
		t.Expect(cms.Get(ctx, name, metav1.GetOptions{ResourceVersion: written.ResourceVersion})).
			To(gomega.HaveField("UID", written.UID))
	}
}

func futureVersionTimesOut(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	future := strconv.FormatUint(t.Number(cms.MustList(ctx, cms.Mine()).ResourceVersion)+1_000_000_000, 10)
	// A raw request, because clients retry after the time the server gives.
	got := t.Get(ctx, cms.Path()+"?resourceVersionMatch=NotOlderThan&resourceVersion="+future)
	t.Expect(tooLarge(t, got).Details.RetryAfterSeconds).To(gomega.BeNumerically(">", 0), "%s", got)
}

func versionMatchMustBeAskedRight(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	cms.Refuses(ctx,
		"resourceVersionMatch=Exact",
		"resourceVersionMatch=Exact&resourceVersion=0",
		"resourceVersionMatch=Roughly&resourceVersion=1",
		"sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=1")
}

func fieldSelectorsSelect(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	cms.Make(ctx, "a", "b", "c")
	everywhere := t.Kube.CoreV1().ConfigMaps(metav1.NamespaceAll)
	for selector, want := range map[string][]string{
		"metadata.name=b":                                     {"b"},
		"metadata.name!=b":                                    {"a", "c"},
		"metadata.name=b,metadata.name!=b":                    {},
		"metadata.namespace=" + cms.Namespace:                 {"a", "b", "c"},
		"metadata.namespace!=" + cms.Namespace:                {},
		"metadata.name=a,metadata.namespace=" + cms.Namespace: {"a"},
	} {
		list, err := everywhere.List(ctx, cms.Mine(func(opts *metav1.ListOptions) { opts.FieldSelector = selector }))
		t.Expect(err).NotTo(gomega.HaveOccurred(), selector)
		t.Expect(suite.Names(list)).To(gomega.Equal(want), selector)
	}
	_, err := cms.List(ctx, metav1.ListOptions{FieldSelector: "data.content=first"})
	t.Expect(err).To(suite.BeStatus(suite.BadRequest))
	active := metav1.ListOptions{FieldSelector: "status.phase=Active,metadata.name=" + cms.Namespace}
	t.Expect(t.Kube.CoreV1().Namespaces().List(ctx, active)).To(gomega.HaveField("Items", gomega.HaveLen(1)))
}

func labelSelectorsSelect(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	cms.MakeColored(ctx, map[string]string{"a": "red", "b": "blue", "c": "green"})
	cms.Make(ctx, "d")
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
		list := cms.MustList(ctx, cms.Mine(func(opts *metav1.ListOptions) { opts.LabelSelector += "," + selector }))
		t.Expect(suite.Names(list)).To(gomega.Equal(want), selector)
	}
	_, err := cms.List(ctx, metav1.ListOptions{LabelSelector: "color in red"})
	t.Expect(err).To(suite.BeStatus(suite.BadRequest))
}

func listAsTable(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	cms.Make(ctx, "a", "b")
	path := cms.Path() + "?labelSelector=" + cms.Mine().LabelSelector + "&includeObject="
	for include, kind := range map[string]string{"": "PartialObjectMetadata", "Metadata": "PartialObjectMetadata",
		"Object": "ConfigMap", "None": ""} {
		found := suite.JSON[metav1.Table](t, t.Ask(ctx, suite.Request{Path: path + include, Accept: suite.TableType}))
		t.Expect(found.Kind).To(gomega.Equal("Table"))
		t.Expect(found.ResourceVersion).NotTo(gomega.BeEmpty())
		at := slices.IndexFunc(found.ColumnDefinitions,
			func(c metav1.TableColumnDefinition) bool { return c.Name == "Name" })
		t.Expect(at).To(gomega.BeNumerically(">=", 0), "no column Name")
		t.Expect(found.Rows).To(gomega.HaveLen(2))
		for i, row := range found.Rows {
			t.Expect(row.Cells).To(gomega.HaveLen(len(found.ColumnDefinitions)))
			t.Expect(row.Cells[at]).To(gomega.Equal([]any{"a", "b"}[i]))
			t.Expect(kindOf(row.Object.Raw)).To(gomega.Equal(kind), "includeObject=%s", include)
		}
	}
}

func listAsMetadata(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	cms.Make(ctx, "a", "b")
	got := t.Ask(ctx, suite.Request{
		Path:   cms.Path() + "?labelSelector=" + cms.Mine().LabelSelector,
		Accept: "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
	})
	type listed struct {
		Kind  string
		Items []struct {
			Kind     string
			Metadata metav1.ObjectMeta
			Data     map[string]string
		}
	}
	list := suite.JSON[listed](t, got)
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
