package list

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"snowglobe.test/conformance/suite"
)

var cachedCases = []suite.Case{
	{ID: "S6/lists-come-from-the-cache", Since: "1.34", Needs: suite.Launch, Test: listsComeFromTheCache,
		Source: "KEP-2340; KEP-4988; k8s.io/apiserver/pkg/storage/cacher/delegator/interface.go, " +
			"ShouldDelegateList; k8s.io/apiserver/pkg/storage/cacher/delegator.go, GetList",
		Promise: "While the store can't list, lists are answered from the watch cache, consistent ones, exact ones " +
			"and pages too; what the cache never had is an error, not another state."},
	{ID: "S6/late-cache-gives-no-stale-list", Failure: true, Needs: suite.Launch, Test: lateCacheGivesNoStaleList,
		Source: "KEP-2340; k8s.io/apiserver/pkg/storage/cacher/delegator.go, GetList: the fallback; " +
			"k8s.io/apiserver/pkg/storage/cacher/watch_cache.go, WaitUntilFreshAndGetList",
		Promise: "While a watch cache is behind its store, a consistent list still has every write, resourceVersion " +
			"0 has the old state, and NotOlderThan a version that the cache lacks is 504."},
	{ID: "S6/starting-cache-is-429", Failure: true, Needs: suite.Launch, Test: startingCacheIs429,
		Source: "KEP-4568; k8s.io/apiserver/pkg/storage/cacher/delegator.go, shouldDelegateListOnNotReadyCache; " +
			"k8s.io/apiserver/pkg/storage/cacher/cacher.go, Watch and GetList",
		Promise: "While a watch cache starts, watches and whole lists are 429 with a time to come back, gets and " +
			"limited lists are answered, and all are once it has started."},
	{ID: "S6/large-lists-are-whole", Test: largeListsAreWhole,
		Source: "KEP-5116; k8s.io/apimachinery/pkg/runtime/serializer/json/collections.go; " +
			"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/writers.go, deferredResponseWriter",
		Promise: "A large list is the same in JSON, in protobuf and compressed: each of its items as a get has it, " +
			"its metadata, and a content encoding only if the client takes it and the list is large."},
	{ID: "S6/list-from-zero-has-no-pages", Test: listFromZeroHasNoPages,
		Source: "k8s.io/apiserver/pkg/storage/cacher/cacher.go, computeListLimit",
		Promise: "A limit does not hold for a list at resourceVersion 0: it has all that the cache has, and no " +
			"continue token."},
	{ID: "S6/future-get-times-out", Failure: true, Test: futureGetTimesOut,
		Source: "k8s.io/apiserver/pkg/storage/cacher/cacher.go, Get; k8s.io/apiserver/pkg/storage/errors.go, " +
			"NewTooLargeResourceVersionError",
		Promise: "A get that must be no older than a future resourceVersion, and a list exactly at one, are answered " +
			"504 with the cause ResourceVersionTooLarge; a get at 0 is answered."},
	{ID: "S6/continue-stands-alone", Level: suite.Core, Failure: true, Test: continueStandsAlone,
		Source:  "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation/validation.go, ValidateListOptions",
		Promise: "A continue token can't be combined with a resourceVersionMatch: 422; by itself it goes on."},
}

func listsComeFromTheCache(ctx context.Context, t *suite.T) {
	cp, other := t.Shared(ctx, "defaults")
	cms := other.ConfigMaps(ctx)
	then := cms.Make(ctx, "a", "b", "c").ResourceVersion
	cms.Make(ctx, "d")
	cms.Remove(ctx, "a")
	rule := t.Inject(cp, "fail store/list resource=configmaps namespace="+cms.Namespace+
		" with=unavailable optional")
	defer rule.Remove()
	names := func(change ...func(*metav1.ListOptions)) []string {
		return suite.Names(cms.MustList(ctx, cms.Mine(change...)))
	}
	now := []string{"b", "c", "d"}
	t.Expect(names()).To(gomega.Equal(now), "a consistent list")
	t.Expect(names(suite.From("0"))).To(gomega.Equal(now), "any version")
	t.Expect(names(match(metav1.ResourceVersionMatchNotOlderThan, then))).
		To(gomega.Equal(now), "not older than %s", then)
	t.Expect(names(match(metav1.ResourceVersionMatchExact, then))).To(gomega.Equal([]string{"a", "b", "c"}),
		"exactly at %s", then)
	first := cms.MustList(ctx, cms.Mine(limited(2, "")))
	t.Expect(suite.Names(first)).To(gomega.Equal([]string{"b", "c"}))
	cms.Make(ctx, "e")
	rest := cms.MustList(ctx, cms.Mine(limited(2, first.Continue)))
	t.Expect(suite.Names(rest)).To(gomega.Equal([]string{"d"}), "the second page")
	t.Expect(rest.ResourceVersion).To(gomega.Equal(first.ResourceVersion))

	// The cache of a new resource begins with it, so the store has to know what was before.
	w := other.Install(ctx, other.WidgetCRD())
	w.Make(ctx, "one")
	other.Served(ctx, w.Path)
	before := t.Inject(cp, "fail store/list resource=widgets."+w.Resource.Group+" with=unavailable")
	defer before.Remove()
	old := other.Get(ctx, w.Path+"?resourceVersionMatch=Exact&resourceVersion=1")
	t.Expect(old.Code).To(gomega.BeNumerically(">=", http.StatusInternalServerError), "%s", old)
	t.Expect(w.MustList(ctx).Items).To(gomega.HaveLen(1))
}

func lateCacheGivesNoStaleList(ctx context.Context, t *suite.T) {
	cp, other := t.Launch(ctx)
	cms := other.ConfigMaps(ctx)
	seen := cms.Make(ctx, "a")
	t.Eventually(ctx, func() []string { return suite.Names(cms.MustList(ctx, cms.Mine(suite.From("0")))) }).
		Should(gomega.Equal([]string{"a"}))
	frozen := t.Inject(cp, "freeze cache/configmaps at="+seen.ResourceVersion)
	written := cms.Make(ctx, "b")
	cms.Change(ctx, "a", "second")
	t.Expect(suite.Names(cms.MustList(ctx, cms.Mine(suite.From("0"))))).
		To(gomega.Equal([]string{"a"}), "the cache at %s", seen.ResourceVersion)
	fresh := cms.MustList(ctx, cms.Mine())
	t.Expect(suite.Names(fresh)).To(gomega.Equal([]string{"a", "b"}))
	t.Expect(fresh.Items[0].Data).To(gomega.HaveKeyWithValue("content", "second"))
	got := other.Get(ctx, cms.Path()+"?resourceVersionMatch=NotOlderThan&resourceVersion="+written.ResourceVersion)
	tooLarge(t, got)
	frozen.Remove()
	list := cms.MustList(ctx, cms.Mine(match(metav1.ResourceVersionMatchNotOlderThan, written.ResourceVersion)))
	t.Expect(suite.Names(list)).To(gomega.Equal([]string{"a", "b"}))
}

// tooLarge asserts that an answer says that the version asked for is in the future.
func tooLarge(t *suite.T, got suite.Answer) metav1.Status {
	status := t.ExpectStatus(got, suite.Timeout)
	t.Expect(status.Details.Causes).
		To(gomega.ContainElement(gomega.HaveField("Type", metav1.CauseTypeResourceVersionTooLarge)), "%s", got)
	return status
}

func startingCacheIs429(ctx context.Context, t *suite.T) {
	cp, other := t.Shared(ctx, "defaults")
	definition := other.WidgetCRD()
	gate := t.Gate(cp, "cache/widgets."+definition.Spec.Group+" verb=ready")
	defer gate.Open()
	created := suite.Create(ctx, t, other.CRDs.Create, definition)
	w := other.WidgetsOf(created, "v1")
	t.Eventually(ctx, func() error { return suite.ErrorOf(w.TryMake(ctx, "one")) }).
		Should(gomega.Succeed(), "a write needs no cache")
	t.Must(suite.ErrorOf(gate.Await(ctx, 1)), "wait until the cache is held")
	for _, query := range []string{"", "?resourceVersion=0", "?labelSelector=a%3Db&limit=1",
		"?watch=1&timeoutSeconds=1"} {
		got := other.Get(ctx, w.Path+query)
		status := t.ExpectStatus(got, suite.TooMany)
		t.Expect(status.Details.RetryAfterSeconds).To(gomega.BeNumerically(">", 0), "%s", got)
		t.Expect(got.Header.Get("Retry-After")).To(gomega.Equal(fmt.Sprint(status.Details.RetryAfterSeconds)), "%s",
			got)
	}
	other.Answered(ctx, w.Path+"/one", http.StatusOK)
	other.Answered(ctx, w.Path+"?limit=1", http.StatusOK)
	gate.Open()
	other.Served(ctx, w.Path)
	t.Expect(w.MustList(ctx).Items).To(gomega.HaveLen(1))
}

func largeListsAreWhole(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	for i := range 20 {
		object := cms.Object(fmt.Sprintf("n%02d", i), strings.Repeat("snow <&> ", 1000))
		cms.MustCreate(ctx, object)
	}
	path := cms.Path() + "?limit=19&labelSelector=" + cms.Mine().LabelSelector
	plain := t.Ask(ctx, suite.Request{Path: path, Header: map[string]string{"Accept-Encoding": "identity"}})
	t.Expect(plain.Header.Get("Content-Encoding")).To(gomega.BeEmpty())
	list := suite.JSON[corev1.ConfigMapList](t, plain)
	t.Expect(list.Kind).To(gomega.Equal("ConfigMapList"))
	t.Expect(list.APIVersion).To(gomega.Equal("v1"))
	t.Expect(list.Continue).NotTo(gomega.BeEmpty())
	t.Expect(list.Items).To(gomega.HaveLen(19))
	for _, item := range list.Items {
		t.Expect(item).To(gomega.Equal(*cms.Read(ctx, item.Name)), "ConfigMap %s in the list and by itself", item.Name)
	}
	again := fmt.Sprintf("%s&resourceVersion=%s&resourceVersionMatch=Exact", path, list.ResourceVersion)
	zipped := t.Ask(ctx, suite.Request{Path: again, Header: map[string]string{"Accept-Encoding": "gzip"}})
	t.Expect(zipped.Header.Get("Content-Encoding")).To(gomega.Equal("gzip"))
	t.Expect(zipped.Header.Values("Vary")).To(gomega.ContainElement("Accept-Encoding"))
	var unzipped corev1.ConfigMapList
	t.Must(json.Unmarshal(unzip(t, zipped.Body), &unzipped), "decode the list that was compressed")
	t.Expect(unzipped).To(gomega.Equal(list))
	small := t.Ask(ctx, suite.Request{Path: cms.Path() + "/n00", Header: map[string]string{"Accept-Encoding": "gzip"}})
	t.Expect(small.Header.Get("Content-Encoding")).To(gomega.BeEmpty(), "it is small")

	config := rest.CopyConfig(t.Config)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	t.Must(err, "client for protobuf")
	binary, err := client.CoreV1().ConfigMaps(cms.Namespace).List(ctx, cms.Mine(limited(19, ""),
		match(metav1.ResourceVersionMatchExact, list.ResourceVersion)))
	t.Expect(err).NotTo(gomega.HaveOccurred())
	t.Expect(binary.ListMeta).To(gomega.Equal(list.ListMeta))
	t.Expect(binary.Items).To(gomega.Equal(list.Items))
}

func unzip(t *suite.T, body []byte) []byte {
	reader, err := gzip.NewReader(bytes.NewReader(body))
	t.Must(err, "decompress an answer")
	content, err := io.ReadAll(reader)
	t.Must(err, "decompress an answer")
	return content
}

func listFromZeroHasNoPages(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	cms.Make(ctx, "a", "b", "c")
	t.Eventually(ctx, func() []string {
		list := cms.MustList(ctx, cms.Mine(suite.From("0"), limited(1, "")))
		t.Expect(list.Continue).To(gomega.BeEmpty())
		return suite.Names(list)
	}).Should(gomega.Equal([]string{"a", "b", "c"}))
	paged := cms.MustList(ctx, cms.Mine(limited(1, "")))
	t.Expect(suite.Names(paged)).To(gomega.Equal([]string{"a"}))
	t.Expect(paged.Continue).NotTo(gomega.BeEmpty())
}

func futureGetTimesOut(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	written := cms.Make(ctx, "a")
	future := fmt.Sprint(t.Number(written.ResourceVersion) + 1_000_000_000)
	tooLarge(t, t.Get(ctx, cms.Path()+"/a?resourceVersion="+future))
	tooLarge(t, t.Get(ctx, cms.Path()+"?resourceVersionMatch=Exact&resourceVersion="+future))
	t.Served(ctx, cms.Path()+"/a?resourceVersion=0")
}

func continueStandsAlone(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	last := cms.Make(ctx, "a", "b")
	token := cms.MustList(ctx, cms.Mine(limited(1, ""))).Continue
	cms.Refuses(ctx,
		"limit=1&resourceVersionMatch=Exact&resourceVersion="+last.ResourceVersion+"&continue="+token,
		"resourceVersionMatch=NotOlderThan&resourceVersion="+last.ResourceVersion+"&continue="+token)
	t.Expect(suite.Names(cms.MustList(ctx, cms.Mine(limited(1, token))))).To(gomega.Equal([]string{"b"}))
}
