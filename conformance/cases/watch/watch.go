// Package watch has the cases about watches: where they begin, what they send and leave out, and
// how they end. What must not come is shown by an event after it, which has come.
package watch

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"snowglobe.test/conformance/suite"
)

// Cases are the cases of this area.
var Cases = slices.Concat([]suite.Case{
	{ID: "S6/watch-begins-with-what-is-there", Level: suite.Core, Test: watchBeginsWithWhatIsThere,
		Source: "k8s.io/apiserver/pkg/storage/cacher/watch_cache.go, getAllEventsSinceLocked",
		Promise: "A watch without a resourceVersion begins with an ADDED event for each existing object, then " +
			"delivers changes in order."},
	{ID: "S6/watch-from-zero", Level: suite.Core, Test: watchFromZero,
		Source: "k8s.io/apiserver/pkg/storage/cacher/watch_cache.go, getAllEventsSinceLocked: 'Get State and " +
			"Start at Any'",
		Promise: "A watch at resourceVersion 0 begins with the state in the server's cache, shows no object twice, " +
			"and catches up with the present."},
	{ID: "S6/watch-follows-a-list-without-a-gap", Level: suite.Core, Test: watchFollowsAListWithoutAGap,
		Source: "k8s.io/apiserver/pkg/storage/cacher/watch_cache_history.go",
		Promise: "A watch from a list's resourceVersion sees every later change, once, in order, with the object's " +
			"resourceVersion of that change."},
	{ID: "S6/watch-resumes-from-any-event", Level: suite.Core, Test: watchResumesFromAnyEvent,
		Source:  "k8s.io/apiserver/pkg/storage/cacher/watch_cache_history.go",
		Promise: "A watch from the resourceVersion of an event sees exactly the events after it."},
	{ID: "S6/watchers-see-the-same", Level: suite.Core, Test: watchersSeeTheSame,
		Source:  "k8s.io/apiserver/pkg/storage/cacher/cacher.go, dispatchEvents",
		Promise: "Two watchers of one collection see the same events in the same order."},
	{ID: "S6/too-old-a-watch-is-gone", Level: suite.Core, Failure: true, Test: tooOldAWatchIsGone,
		Source:  "k8s.io/apiserver/pkg/storage/cacher/watch_cache_history.go: 'too old resource version'",
		Promise: "A watch from before the server's history gets one ERROR event with 410 Expired, and ends."},
	{ID: "S6/malformed-version-is-refused", Level: suite.Core, Failure: true, Test: malformedVersionIsRefused,
		Source:  "k8s.io/apiserver/pkg/storage/api_object_versioner.go, ParseResourceVersion",
		Promise: "A resourceVersion that is not a number is refused, by a watch and by a list."},
	{ID: "S6/bookmarks-on-request", Level: suite.Core, Test: bookmarksOnRequest,
		Source: "k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go, nextBookmarkTime: two seconds before the " +
			"deadline",
		Promise: "With allowWatchBookmarks, a BOOKMARK with the type and a resourceVersion no older than the last " +
			"event comes before the watch times out; without it, none comes."},
	{ID: "S6/streaming-list-ends-with-a-bookmark", Level: suite.Core, Test: streamingListEndsWithABookmark,
		Source: "KEP-3157; k8s.io/apiserver/pkg/storage/cacher/cacher.go, setInitialEventsEndBookmarkIfRequested",
		Promise: "sendInitialEvents streams the current state as ADDED events, then one annotated BOOKMARK, then " +
			"changes."},
	{ID: "S6/streaming-list-must-be-asked-right", Level: suite.Core, Failure: true, Test: streamingListMustBeAskedRight,
		Source: "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation, validateWatchOptions",
		Promise: "sendInitialEvents without resourceVersionMatch=NotOlderThan, or resourceVersionMatch without it, " +
			"is refused with 422."},
	{ID: "S6/deleted-carries-the-last-state", Level: suite.Core, Test: deletedCarriesTheLastState,
		Source: "k8s.io/apiserver/pkg/storage/etcd3/event.go and watcher.go, transform: the previous value with the " +
			"revision of the deletion",
		Promise: "DELETED carries the object's last state, with the resourceVersion of the deletion."},
	{ID: "S6/finalized-deletion-is-two-events", Level: suite.Core, Test: finalizedDeletionIsTwoEvents,
		Source: "k8s.io/apiserver/pkg/registry/generic/registry/store.go, Delete and deleteWithoutFinalizers",
		Promise: "Deleting an object with a finalizer causes a MODIFIED with a deletionTimestamp; DELETED comes when " +
			"the last finalizer is removed."},
	{ID: "S6/label-selector-turns-updates-into-events", Level: suite.Core, Test: labelSelectorTurnsUpdates,
		Source: "k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go, convertToWatchEvent",
		Promise: "On a watch with a label selector, an object that starts to match is ADDED, and one that stops " +
			"matching is DELETED, with its last matching state."},
	{ID: "S6/field-selector-watches-one", Level: suite.Core, Test: fieldSelectorWatchesOne,
		Source:  "k8s.io/apiserver/pkg/storage/cacher/cacher.go, Watch: the scope of a watcher",
		Promise: "A watch of one name, by field selector, sees only that object."},
	{ID: "S6/watch-stays-in-its-namespace", Level: suite.Core, Test: watchStaysInItsNamespace,
		Source:  "k8s.io/apiserver/pkg/storage/cacher/cacher.go, Watch: the scope of a watcher",
		Promise: "A watch of a namespace sees nothing of another; a watch of all sees both."},
	{ID: "S6/watch-times-out", Level: suite.Core, Test: watchTimesOut,
		Source: "k8s.io/apiserver/pkg/endpoints/handlers/watch.go, HandleHTTP",
		Promise: "A watch with timeoutSeconds ends by itself, without an ERROR event; its stream has one JSON " +
			"document per line."},
	{ID: "S6/watch-as-metadata-or-table", Level: suite.Core, Test: watchAsMetadataOrTable,
		Source: "k8s.io/apiserver/pkg/endpoints/handlers/response.go, watchEncoder and asTable",
		Promise: "A watch can be requested as PartialObjectMetadata, or as a Table whose columns come with the first " +
			"event only."},
}, cachedCases)

func watchBeginsWithWhatIsThere(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	cms.Make(ctx, "a", "b", "c")
	cms.Remove(ctx, "b")
	events := t.Watch(ctx, cms.Watch, cms.Mine())
	t.Expect(suite.Brief(events.Take(ctx, 2))).To(gomega.ConsistOf("ADDED a", "ADDED c"))
	added := cms.Make(ctx, "d")
	changed := cms.Change(ctx, "a", "second")
	t.Expect(suite.Exact(events.Take(ctx, 2))).
		To(gomega.Equal([]string{"ADDED d@" + added.ResourceVersion, "MODIFIED a@" + changed.ResourceVersion}))
}

// The cache may lag, so earlier changes may come as state or as events.
func watchFromZero(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	cms.Make(ctx, "a", "b")
	events := t.Watch(ctx, cms.Watch, cms.Mine(suite.From("0")))
	cms.Make(ctx, "last")
	seen := suite.Brief(events.Until(ctx, watch.Added, "last"))
	t.Expect(seen).To(gomega.ConsistOf("ADDED a", "ADDED b", "ADDED last"))
}

// story changes ConfigMaps and returns the events a watcher must see.
func story(ctx context.Context, c *suite.ConfigMaps) []string {
	var told []string
	tell := func(kind watch.EventType, object *corev1.ConfigMap) {
		told = append(told, fmt.Sprint(kind, " ", object.Name, "@", object.ResourceVersion))
	}
	tell(watch.Added, c.Make(ctx, "x"))
	tell(watch.Modified, c.Change(ctx, "x", "second"))
	tell(watch.Added, c.Make(ctx, "y"))
	tell(watch.Modified, c.Change(ctx, "x", "third"))
	tell(watch.Modified, c.Change(ctx, "y", "second"))
	tell(watch.Added, c.Make(ctx, "z"))
	return told
}

func watchFollowsAListWithoutAGap(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	cms.Make(ctx, "before")
	list := cms.MustList(ctx, cms.Mine())
	told := story(ctx, cms)
	events := t.Watch(ctx, cms.Watch, cms.Mine(suite.From(list.ResourceVersion)))
	t.Expect(suite.Exact(events.Take(ctx, len(told)))).To(gomega.Equal(told))
	cms.Remove(ctx, "x")
	cms.Make(ctx, "last")
	t.Expect(suite.Brief(events.Take(ctx, 2))).To(gomega.Equal([]string{"DELETED x", "ADDED last"}))
}

func watchResumesFromAnyEvent(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	start := cms.MustList(ctx, cms.Mine()).ResourceVersion
	told := story(ctx, cms)
	first := t.Watch(ctx, cms.Watch, cms.Mine(suite.From(start)))
	events := first.Take(ctx, len(told))
	t.Expect(suite.Exact(events)).To(gomega.Equal(told))
	for i, event := range events[:len(events)-1] {
		resumed := t.Watch(ctx, cms.Watch, cms.Mine(suite.From(suite.VersionOf(event.Object))))
		t.Expect(suite.Exact(resumed.Take(ctx, len(told)-i-1))).To(gomega.Equal(told[i+1:]), "after event %d", i+1)
		resumed.Stop()
	}
}

func watchersSeeTheSame(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	start := cms.MustList(ctx, cms.Mine()).ResourceVersion
	early := t.Watch(ctx, cms.Watch, cms.Mine(suite.From(start)))
	story(ctx, cms)
	late := t.Watch(ctx, cms.Watch, cms.Mine(suite.From(start)))
	cms.Remove(ctx, "y")
	cms.Make(ctx, "last")
	seen := suite.Exact(early.Until(ctx, watch.Added, "last"))
	t.Expect(seen).To(gomega.HaveLen(8))
	t.Expect(suite.Exact(late.Until(ctx, watch.Added, "last"))).To(gomega.Equal(seen))
}

// The cache of a new CRD begins with the CRD, so 1 is before it.
func tooOldAWatchIsGone(ctx context.Context, t *suite.T) {
	w := t.Install(ctx, t.WidgetCRD())
	w.Make(ctx, "one")
	events := t.Watch(ctx, w.Watch, metav1.ListOptions{ResourceVersion: "1"})
	event := events.Next(ctx)
	t.Expect(event.Type).To(gomega.Equal(watch.Error))
	t.Expect(apierrors.FromObject(event.Object)).To(suite.BeStatus(suite.Expired))
	t.Expect(events.Ended(ctx)).To(gomega.BeEmpty())
}

// To a watch, this release answers 500; only the refusal is promised.
func malformedVersionIsRefused(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	t.ExpectStatus(t.Get(ctx, cms.Path()+"?resourceVersion=abc"), suite.BadRequest)
	watched := t.Get(ctx, cms.Path()+"?watch=1&timeoutSeconds=1&resourceVersion=abc")
	t.Expect(watched.Code).To(gomega.BeNumerically(">=", http.StatusBadRequest), "%s", watched)
}

func bookmarksOnRequest(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	short := func(opts *metav1.ListOptions) { opts.TimeoutSeconds = new(int64(3)) }
	start := cms.MustList(ctx, cms.Mine()).ResourceVersion
	quiet := t.Watch(ctx, cms.Watch, cms.Mine(suite.From(start), short))
	marked := t.Watch(ctx, cms.Watch, cms.Mine(suite.From(start), short,
		func(opts *metav1.ListOptions) { opts.AllowWatchBookmarks = true }))
	last := cms.Make(ctx, "a")
	t.Expect(suite.Brief(marked.Take(ctx, 1))).To(gomega.Equal([]string{"ADDED a"}))
	object := marked.NextConfigMap(ctx, watch.Bookmark)
	t.Expect(t.Number(object.ResourceVersion)).To(gomega.BeNumerically(">=", t.Number(last.ResourceVersion)))
	t.Expect(object.Name).To(gomega.BeEmpty())
	t.Expect(object.Annotations).NotTo(gomega.HaveKey(metav1.InitialEventsAnnotationKey))
	t.Expect(suite.Brief(quiet.Ended(ctx))).To(gomega.Equal([]string{"ADDED a"}))
}

// streaming requests a streaming list (sendInitialEvents).
func streaming(opts *metav1.ListOptions) {
	opts.SendInitialEvents, opts.ResourceVersionMatch, opts.AllowWatchBookmarks = new(true),
		metav1.ResourceVersionMatchNotOlderThan, true
}

func streamingListEndsWithABookmark(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	last := cms.Make(ctx, "a", "b", "c")
	events := t.Watch(ctx, cms.Watch, cms.Mine(streaming))
	t.Expect(suite.Brief(events.Take(ctx, 3))).To(gomega.ConsistOf("ADDED a", "ADDED b", "ADDED c"))
	object := events.NextConfigMap(ctx, watch.Bookmark)
	t.Expect(object.Annotations).To(gomega.HaveKeyWithValue(metav1.InitialEventsAnnotationKey, "true"))
	t.Expect(t.Number(object.ResourceVersion)).To(gomega.BeNumerically(">=", t.Number(last.ResourceVersion)))
	added := cms.Make(ctx, "d")
	t.Expect(suite.Exact(events.Take(ctx, 1))).To(gomega.Equal([]string{"ADDED d@" + added.ResourceVersion}))
}

func streamingListMustBeAskedRight(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	const watched = "watch=1&allowWatchBookmarks=true&timeoutSeconds=1&"
	cms.Refuses(ctx,
		watched+"sendInitialEvents=true",
		watched+"sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=1",
		watched+"resourceVersionMatch=NotOlderThan&resourceVersion=1")
}

func deletedCarriesTheLastState(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	cms.Make(ctx, "a")
	last := cms.Change(ctx, "a", "the last")
	events := t.Watch(ctx, cms.Watch, cms.Mine(suite.From(last.ResourceVersion)))
	cms.Remove(ctx, "a")
	deleted := events.NextConfigMap(ctx, watch.Deleted)
	t.Expect(deleted.Data).To(gomega.Equal(last.Data))
	t.Expect(deleted.UID).To(gomega.Equal(last.UID))
	t.Expect(t.Number(deleted.ResourceVersion)).To(gomega.BeNumerically(">", t.Number(last.ResourceVersion)))
	again := cms.Make(ctx, "a")
	t.Expect(again.UID).NotTo(gomega.Equal(last.UID))
	t.Expect(suite.Exact(events.Take(ctx, 1))).To(gomega.Equal([]string{"ADDED a@" + again.ResourceVersion}))
}

func finalizedDeletionIsTwoEvents(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	object := cms.Object("held", "first")
	object.Finalizers = []string{"conformance.snowglobe.test/hold"}
	created := cms.MustCreate(ctx, object)
	events := t.Watch(ctx, cms.Watch, cms.Mine(suite.From(created.ResourceVersion)))
	cms.Remove(ctx, "held")
	marked := events.NextConfigMap(ctx, watch.Modified)
	t.Expect(marked.Name).To(gomega.Equal("held"))
	t.Expect(marked.DeletionTimestamp).NotTo(gomega.BeNil())
	t.Must(suite.ErrorOf(cms.Merge(ctx, "held", `{"metadata":{"finalizers":null}}`)), "release ConfigMap held")
	t.Expect(suite.Brief(events.Take(ctx, 1))).To(gomega.Equal([]string{"DELETED held"}))
}

func labelSelectorTurnsUpdates(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	start := cms.MustList(ctx, cms.Mine()).ResourceVersion
	events := t.Watch(ctx, cms.Watch, cms.Mine(suite.From(start),
		func(opts *metav1.ListOptions) { opts.LabelSelector += ",color=red" }))
	write := func(color, content string) *corev1.ConfigMap {
		object := cms.Object("a", content)
		object.Labels["color"] = color
		return suite.Update(ctx, t, cms.Update, object)
	}
	cms.Make(ctx, "a", "never")
	begins := write("red", "begins")
	stays := write("red", "stays")
	ceases := write("blue", "ceases")
	write("blue", "is not seen")
	again := write("red", "again")
	seen := events.Take(ctx, 4)
	t.Expect(suite.Exact(seen)).To(gomega.Equal([]string{
		"ADDED a@" + begins.ResourceVersion, "MODIFIED a@" + stays.ResourceVersion,
		"DELETED a@" + ceases.ResourceVersion, "ADDED a@" + again.ResourceVersion,
	}))
	t.Expect(seen[2].Object.(*corev1.ConfigMap).Data["content"]).To(gomega.Equal("stays"))
}

func fieldSelectorWatchesOne(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	start := cms.MustList(ctx, cms.Mine()).ResourceVersion
	events := t.Watch(ctx, cms.Watch, metav1.ListOptions{ResourceVersion: start, FieldSelector: "metadata.name=y"})
	story(ctx, cms)
	cms.Remove(ctx, "x")
	cms.Remove(ctx, "y")
	t.Expect(suite.Brief(events.Take(ctx, 3))).To(gomega.Equal([]string{"ADDED y", "MODIFIED y", "DELETED y"}))
}

func watchStaysInItsNamespace(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	start := cms.MustList(ctx, cms.Mine()).ResourceVersion
	inside := t.Watch(ctx, cms.Watch, cms.Mine(suite.From(start)))
	everywhere := t.Watch(ctx, t.Kube.CoreV1().ConfigMaps(metav1.NamespaceAll).Watch, cms.Mine(suite.From(start)))
	outside := t.Kube.CoreV1().ConfigMaps(metav1.NamespaceDefault)
	stranger := t.Name + "-stranger"
	suite.Create(ctx, t, outside.Create, cms.Object(stranger, "first"))
	cms.Make(ctx, "own")
	t.Expect(suite.Brief(inside.Take(ctx, 1))).To(gomega.Equal([]string{"ADDED own"}))
	t.Expect(suite.Brief(everywhere.Take(ctx, 2))).To(gomega.Equal([]string{"ADDED " + stranger, "ADDED own"}))
}

// frames decodes the JSON documents of a watch stream that has ended.
func frames(t *suite.T, got suite.Answer) []frame {
	t.ExpectCode(got, http.StatusOK)
	var events []frame
	for line := range strings.Lines(string(got.Body)) {
		var event frame
		t.Must(json.Unmarshal([]byte(line), &event), "decode %q", line)
		events = append(events, event)
	}
	return events
}

// frame is one document of a watch stream.
type frame struct {
	Type   watch.EventType
	Object struct {
		Kind              string
		APIVersion        string
		Metadata          metav1.ObjectMeta
		Data              map[string]string
		ColumnDefinitions []struct{ Name string }
		Rows              []struct{ Cells []any }
	}
}

func watchTimesOut(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	cms.Make(ctx, "a", "b")
	got := t.Get(ctx, cms.Path()+"?watch=1&timeoutSeconds=1&labelSelector="+cms.Mine().LabelSelector)
	t.Expect(got.Header.Get("Content-Type")).To(gomega.Equal("application/json"))
	var seen []string
	for _, event := range frames(t, got) {
		seen = append(seen, fmt.Sprint(event.Type, " ", event.Object.APIVersion, " ", event.Object.Kind, " ",
			event.Object.Metadata.Name))
	}
	t.Expect(seen).To(gomega.ConsistOf("ADDED v1 ConfigMap a", "ADDED v1 ConfigMap b"))
}

func watchAsMetadataOrTable(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	cms.Make(ctx, "a", "b")
	path := cms.Path() + "?watch=1&timeoutSeconds=1&labelSelector=" + cms.Mine().LabelSelector
	partial := frames(t, t.Ask(ctx, suite.Request{Path: path,
		Accept: "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}))
	t.Expect(partial).To(gomega.HaveLen(2))
	for _, event := range partial {
		t.Expect(event.Object.Kind).To(gomega.Equal("PartialObjectMetadata"))
		t.Expect(event.Object.Metadata.Labels).To(gomega.HaveKey(suite.CaseLabel))
		t.Expect(event.Object.Data).To(gomega.BeEmpty())
	}
	tables := frames(t, t.Ask(ctx, suite.Request{Path: path, Accept: suite.TableType}))
	t.Expect(tables).To(gomega.HaveLen(2))
	for _, event := range tables {
		t.Expect(event.Object.Kind).To(gomega.Equal("Table"))
		t.Expect(event.Object.Rows).To(gomega.HaveLen(1))
	}
	t.Expect(tables[0].Object.ColumnDefinitions).NotTo(gomega.BeEmpty())
	t.Expect(tables[1].Object.ColumnDefinitions).To(gomega.BeEmpty())
}
