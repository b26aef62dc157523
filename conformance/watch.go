package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

var watchCases = []Case{
	{ID: "S6/watch-begins-with-what-is-there", Test: watchBeginsWithWhatIsThere,
		Promise: "A watch without a resourceVersion begins with an ADDED event for each existing object, then delivers changes in order."},
	{ID: "S6/watch-from-zero", Test: watchFromZero,
		Promise: "A watch at resourceVersion 0 begins with the state in the server's cache, shows no object twice, and catches up with the present."},
	{ID: "S6/watch-follows-a-list-without-a-gap", Test: watchFollowsAListWithoutAGap,
		Promise: "A watch from a list's resourceVersion sees every later change, once, in order, with the object's resourceVersion of that change."},
	{ID: "S6/watch-resumes-from-any-event", Test: watchResumesFromAnyEvent,
		Promise: "A watch from the resourceVersion of an event sees exactly the events after it."},
	{ID: "S6/watchers-see-the-same", Test: watchersSeeTheSame,
		Promise: "Two watchers of one collection see the same events in the same order."},
	{ID: "S6/too-old-a-watch-is-gone", Test: tooOldAWatchIsGone,
		Promise: "A watch from before the server's history gets one ERROR event with 410 Expired, and ends."},
	{ID: "S6/malformed-version-is-refused", Test: malformedVersionIsRefused,
		Promise: "A resourceVersion that is not a number is refused, by a watch and by a list."},
	{ID: "S6/bookmarks-on-request", Test: bookmarksOnRequest,
		Promise: "With allowWatchBookmarks, a BOOKMARK with the type and a resourceVersion no older than the last event comes before the watch times out; without it, none comes."},
	{ID: "S6/streaming-list-ends-with-a-bookmark", Test: streamingListEndsWithABookmark,
		Promise: "sendInitialEvents streams the current state as ADDED events, then one annotated BOOKMARK, then changes."},
	{ID: "S6/streaming-list-must-be-asked-right", Test: streamingListMustBeAskedRight,
		Promise: "sendInitialEvents without resourceVersionMatch=NotOlderThan, or resourceVersionMatch without it, is refused with 422."},
	{ID: "S6/deleted-carries-the-last-state", Test: deletedCarriesTheLastState,
		Promise: "DELETED carries the object's last state, with the resourceVersion of the deletion."},
	{ID: "S6/finalized-deletion-is-two-events", Test: finalizedDeletionIsTwoEvents,
		Promise: "Deleting an object with a finalizer causes a MODIFIED with a deletionTimestamp; DELETED comes when the last finalizer is removed."},
	{ID: "S6/label-selector-turns-updates-into-events", Test: labelSelectorTurnsUpdates,
		Promise: "On a watch with a label selector, an object that starts to match is ADDED, and one that stops matching is DELETED, with its last matching state."},
	{ID: "S6/field-selector-watches-one", Test: fieldSelectorWatchesOne,
		Promise: "A watch of one name, by field selector, sees only that object."},
	{ID: "S6/watch-stays-in-its-namespace", Test: watchStaysInItsNamespace,
		Promise: "A watch of a namespace sees nothing of another; a watch of all sees both."},
	{ID: "S6/watch-times-out", Test: watchTimesOut,
		Promise: "A watch with timeoutSeconds ends by itself, without an ERROR event; its stream has one JSON document per line."},
	{ID: "S6/watch-as-metadata-or-table", Test: watchAsMetadataOrTable,
		Promise: "A watch can be requested as PartialObjectMetadata, or as a Table whose columns come with the first event only."},
}

// k8s.io/apiserver/pkg/storage/cacher/watch_cache.go, getAllEventsSinceLocked.
func watchBeginsWithWhatIsThere(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	cms.make(ctx, "a", "b", "c")
	cms.remove(ctx, "b")
	events := t.watch(ctx, cms.Watch, cms.mine())
	t.Expect(brief(events.take(ctx, 2))).To(gomega.ConsistOf("ADDED a", "ADDED c"))
	added := cms.make(ctx, "d")
	changed := cms.change(ctx, "a", "second")
	t.Expect(exact(events.take(ctx, 2))).To(gomega.Equal([]string{"ADDED d@" + added.ResourceVersion, "MODIFIED a@" + changed.ResourceVersion}))
}

// k8s.io/apiserver/pkg/storage/cacher/watch_cache.go, getAllEventsSinceLocked:
// "Get State and Start at Any". The cache may lag, so earlier changes may come as state
// or as events.
func watchFromZero(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	cms.make(ctx, "a", "b")
	events := t.watch(ctx, cms.Watch, cms.mine(from("0")))
	cms.make(ctx, "last")
	seen := brief(events.until(ctx, watch.Added, "last"))
	t.Expect(seen).To(gomega.ConsistOf("ADDED a", "ADDED b", "ADDED last"))
}

// story changes ConfigMaps and returns the events a watcher must see.
func (c *configMaps) story(ctx context.Context) []string {
	var told []string
	tell := func(kind watch.EventType, object *corev1.ConfigMap) {
		told = append(told, fmt.Sprint(kind, " ", object.Name, "@", object.ResourceVersion))
	}
	tell(watch.Added, c.make(ctx, "x"))
	tell(watch.Modified, c.change(ctx, "x", "second"))
	tell(watch.Added, c.make(ctx, "y"))
	tell(watch.Modified, c.change(ctx, "x", "third"))
	tell(watch.Modified, c.change(ctx, "y", "second"))
	tell(watch.Added, c.make(ctx, "z"))
	return told
}

// k8s.io/apiserver/pkg/storage/cacher/watch_cache_history.go.
func watchFollowsAListWithoutAGap(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	cms.make(ctx, "before")
	list := cms.list(ctx, cms.mine())
	told := cms.story(ctx)
	events := t.watch(ctx, cms.Watch, cms.mine(from(list.ResourceVersion)))
	t.Expect(exact(events.take(ctx, len(told)))).To(gomega.Equal(told))
	cms.remove(ctx, "x")
	cms.make(ctx, "last")
	t.Expect(brief(events.take(ctx, 2))).To(gomega.Equal([]string{"DELETED x", "ADDED last"}))
}

// k8s.io/apiserver/pkg/storage/cacher/watch_cache_history.go.
func watchResumesFromAnyEvent(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	start := cms.list(ctx, cms.mine()).ResourceVersion
	told := cms.story(ctx)
	first := t.watch(ctx, cms.Watch, cms.mine(from(start)))
	events := first.take(ctx, len(told))
	t.Expect(exact(events)).To(gomega.Equal(told))
	for i, event := range events[:len(events)-1] {
		resumed := t.watch(ctx, cms.Watch, cms.mine(from(versionOf(event.Object))))
		t.Expect(exact(resumed.take(ctx, len(told)-i-1))).To(gomega.Equal(told[i+1:]), "after event %d", i+1)
		resumed.Stop()
	}
}

// k8s.io/apiserver/pkg/storage/cacher/cacher.go, dispatchEvents.
func watchersSeeTheSame(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	start := cms.list(ctx, cms.mine()).ResourceVersion
	early := t.watch(ctx, cms.Watch, cms.mine(from(start)))
	cms.story(ctx)
	late := t.watch(ctx, cms.Watch, cms.mine(from(start)))
	cms.remove(ctx, "y")
	cms.make(ctx, "last")
	seen := exact(early.until(ctx, watch.Added, "last"))
	t.Expect(seen).To(gomega.HaveLen(8))
	t.Expect(exact(late.until(ctx, watch.Added, "last"))).To(gomega.Equal(seen))
}

// k8s.io/apiserver/pkg/storage/cacher/watch_cache_history.go: "too old resource
// version". The cache of a new CRD begins with the CRD, so 1 is before it.
func tooOldAWatchIsGone(ctx context.Context, t *Target) {
	w := t.install(ctx, t.widgetCRD())
	w.make(ctx, "one")
	events := t.watch(ctx, w.Watch, metav1.ListOptions{ResourceVersion: "1"})
	event := events.next(ctx)
	t.Expect(event.Type).To(gomega.Equal(watch.Error))
	t.Expect(apierrors.FromObject(event.Object)).To(beStatus(http.StatusGone, metav1.StatusReasonExpired))
	t.Expect(events.ended(ctx)).To(gomega.BeEmpty())
}

// k8s.io/apiserver/pkg/storage/api_object_versioner.go, ParseResourceVersion. To
// a watch, this release answers 500; only the refusal is promised.
func malformedVersionIsRefused(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	listed := t.get(ctx, cms.path()+"?resourceVersion=abc")
	t.expectStatus(listed, http.StatusBadRequest, metav1.StatusReasonBadRequest)
	watched := t.get(ctx, cms.path()+"?watch=1&timeoutSeconds=1&resourceVersion=abc")
	t.Expect(watched.code).To(gomega.BeNumerically(">=", http.StatusBadRequest), "%s", watched)
}

// k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go, nextBookmarkTime: two
// seconds before the deadline.
func bookmarksOnRequest(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	short := func(opts *metav1.ListOptions) { opts.TimeoutSeconds = new(int64(3)) }
	start := cms.list(ctx, cms.mine()).ResourceVersion
	quiet := t.watch(ctx, cms.Watch, cms.mine(from(start), short))
	marked := t.watch(ctx, cms.Watch, cms.mine(from(start), short, func(opts *metav1.ListOptions) { opts.AllowWatchBookmarks = true }))
	last := cms.make(ctx, "a")
	t.Expect(brief(marked.take(ctx, 1))).To(gomega.Equal([]string{"ADDED a"}))
	object := marked.nextConfigMap(ctx, watch.Bookmark)
	t.Expect(t.number(object.ResourceVersion)).To(gomega.BeNumerically(">=", t.number(last.ResourceVersion)))
	t.Expect(object.Name).To(gomega.BeEmpty())
	t.Expect(object.Annotations).NotTo(gomega.HaveKey(metav1.InitialEventsAnnotationKey))
	t.Expect(brief(quiet.ended(ctx))).To(gomega.Equal([]string{"ADDED a"}))
}

// streaming requests a streaming list (sendInitialEvents).
func streaming(opts *metav1.ListOptions) {
	opts.SendInitialEvents, opts.ResourceVersionMatch, opts.AllowWatchBookmarks = new(true), metav1.ResourceVersionMatchNotOlderThan, true
}

// k8s.io/apiserver/pkg/storage/cacher/cacher.go,
// setInitialEventsEndBookmarkIfRequested: KEP-3157.
func streamingListEndsWithABookmark(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	last := cms.make(ctx, "a", "b", "c")
	events := t.watch(ctx, cms.Watch, cms.mine(streaming))
	t.Expect(brief(events.take(ctx, 3))).To(gomega.ConsistOf("ADDED a", "ADDED b", "ADDED c"))
	object := events.nextConfigMap(ctx, watch.Bookmark)
	t.Expect(object.Annotations).To(gomega.HaveKeyWithValue(metav1.InitialEventsAnnotationKey, "true"))
	t.Expect(t.number(object.ResourceVersion)).To(gomega.BeNumerically(">=", t.number(last.ResourceVersion)))
	added := cms.make(ctx, "d")
	t.Expect(exact(events.take(ctx, 1))).To(gomega.Equal([]string{"ADDED d@" + added.ResourceVersion}))
}

// k8s.io/apimachinery/pkg/apis/meta/internalversion/validation, validateWatchOptions.
func streamingListMustBeAskedRight(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	const watched = "watch=1&allowWatchBookmarks=true&timeoutSeconds=1&"
	cms.refuses(ctx,
		watched+"sendInitialEvents=true",
		watched+"sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=1",
		watched+"resourceVersionMatch=NotOlderThan&resourceVersion=1")
}

// k8s.io/apiserver/pkg/storage/etcd3/event.go and watcher.go, transform: the
// previous value with the revision of the deletion.
func deletedCarriesTheLastState(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	cms.make(ctx, "a")
	last := cms.change(ctx, "a", "the last")
	events := t.watch(ctx, cms.Watch, cms.mine(from(last.ResourceVersion)))
	cms.remove(ctx, "a")
	deleted := events.nextConfigMap(ctx, watch.Deleted)
	t.Expect(deleted.Data).To(gomega.Equal(last.Data))
	t.Expect(deleted.UID).To(gomega.Equal(last.UID))
	t.Expect(t.number(deleted.ResourceVersion)).To(gomega.BeNumerically(">", t.number(last.ResourceVersion)))
	again := cms.make(ctx, "a")
	t.Expect(again.UID).NotTo(gomega.Equal(last.UID))
	t.Expect(exact(events.take(ctx, 1))).To(gomega.Equal([]string{"ADDED a@" + again.ResourceVersion}))
}

// k8s.io/apiserver/pkg/registry/generic/registry/store.go, Delete and
// deleteWithoutFinalizers.
func finalizedDeletionIsTwoEvents(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	object := cms.object("held", "first")
	object.Finalizers = []string{"conformance.snowglobe.test/hold"}
	created := cms.create(ctx, object)
	release := func(ctx context.Context) error {
		_, err := cms.merge(ctx, "held", `{"metadata":{"finalizers":null}}`)
		return err
	}
	t.Cleanup(release)
	events := t.watch(ctx, cms.Watch, cms.mine(from(created.ResourceVersion)))
	cms.remove(ctx, "held")
	marked := events.nextConfigMap(ctx, watch.Modified)
	t.Expect(marked.Name).To(gomega.Equal("held"))
	t.Expect(marked.DeletionTimestamp).NotTo(gomega.BeNil())
	t.must(release(ctx), "release ConfigMap held")
	t.Expect(brief(events.take(ctx, 1))).To(gomega.Equal([]string{"DELETED held"}))
}

// k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go, convertToWatchEvent.
func labelSelectorTurnsUpdates(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	start := cms.list(ctx, cms.mine()).ResourceVersion
	events := t.watch(ctx, cms.Watch, cms.mine(from(start), func(opts *metav1.ListOptions) { opts.LabelSelector += ",color=red" }))
	write := func(color, content string) *corev1.ConfigMap {
		object := cms.object("a", content)
		object.Labels["color"] = color
		updated, err := cms.Update(ctx, object, metav1.UpdateOptions{})
		t.must(err, "update ConfigMap a")
		return updated
	}
	cms.make(ctx, "a", "never")
	begins := write("red", "begins")
	stays := write("red", "stays")
	ceases := write("blue", "ceases")
	write("blue", "is not seen")
	again := write("red", "again")
	seen := events.take(ctx, 4)
	t.Expect(exact(seen)).To(gomega.Equal([]string{
		"ADDED a@" + begins.ResourceVersion, "MODIFIED a@" + stays.ResourceVersion,
		"DELETED a@" + ceases.ResourceVersion, "ADDED a@" + again.ResourceVersion,
	}))
	t.Expect(seen[2].Object.(*corev1.ConfigMap).Data["content"]).To(gomega.Equal("stays"))
}

// k8s.io/apiserver/pkg/storage/cacher/cacher.go, Watch: the scope of a watcher.
func fieldSelectorWatchesOne(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	start := cms.list(ctx, cms.mine()).ResourceVersion
	events := t.watch(ctx, cms.Watch, metav1.ListOptions{ResourceVersion: start, FieldSelector: "metadata.name=y"})
	cms.story(ctx)
	cms.remove(ctx, "x")
	cms.remove(ctx, "y")
	t.Expect(brief(events.take(ctx, 3))).To(gomega.Equal([]string{"ADDED y", "MODIFIED y", "DELETED y"}))
}

// k8s.io/apiserver/pkg/storage/cacher/cacher.go, Watch: the scope of a watcher.
func watchStaysInItsNamespace(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	start := cms.list(ctx, cms.mine()).ResourceVersion
	inside := t.watch(ctx, cms.Watch, cms.mine(from(start)))
	everywhere := t.watch(ctx, t.kube.CoreV1().ConfigMaps(metav1.NamespaceAll).Watch, cms.mine(from(start)))
	outside := t.kube.CoreV1().ConfigMaps(metav1.NamespaceDefault)
	stranger := t.Name + "-stranger"
	_, err := outside.Create(ctx, cms.object(stranger, "first"), metav1.CreateOptions{})
	t.must(err, "create ConfigMap %s in %s", stranger, metav1.NamespaceDefault)
	t.Cleanup(func(ctx context.Context) error { return outside.Delete(ctx, stranger, metav1.DeleteOptions{}) })
	cms.make(ctx, "own")
	t.Expect(brief(inside.take(ctx, 1))).To(gomega.Equal([]string{"ADDED own"}))
	t.Expect(brief(everywhere.take(ctx, 2))).To(gomega.Equal([]string{"ADDED " + stranger, "ADDED own"}))
}

// frames decodes the JSON documents of a watch stream that has ended.
func (t *Target) frames(got answer) []frame {
	t.Expect(got.code).To(gomega.Equal(http.StatusOK), "%s", got)
	var events []frame
	for line := range strings.Lines(string(got.body)) {
		var event frame
		t.must(json.Unmarshal([]byte(line), &event), "decode %q", line)
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

// k8s.io/apiserver/pkg/endpoints/handlers/watch.go, HandleHTTP.
func watchTimesOut(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	cms.make(ctx, "a", "b")
	got := t.get(ctx, cms.path()+"?watch=1&timeoutSeconds=1&labelSelector="+cms.mine().LabelSelector)
	t.Expect(got.header.Get("Content-Type")).To(gomega.Equal("application/json"))
	var seen []string
	for _, event := range t.frames(got) {
		seen = append(seen, fmt.Sprint(event.Type, " ", event.Object.APIVersion, " ", event.Object.Kind, " ", event.Object.Metadata.Name))
	}
	t.Expect(seen).To(gomega.ConsistOf("ADDED v1 ConfigMap a", "ADDED v1 ConfigMap b"))
}

// k8s.io/apiserver/pkg/endpoints/handlers/response.go, watchEncoder and asTable.
func watchAsMetadataOrTable(ctx context.Context, t *Target) {
	cms := t.configMaps(ctx)
	cms.make(ctx, "a", "b")
	path := cms.path() + "?watch=1&timeoutSeconds=1&labelSelector=" + cms.mine().LabelSelector
	partial := t.frames(t.ask(ctx, request{path: path, accept: "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}))
	t.Expect(partial).To(gomega.HaveLen(2))
	for _, event := range partial {
		t.Expect(event.Object.Kind).To(gomega.Equal("PartialObjectMetadata"))
		t.Expect(event.Object.Metadata.Labels).To(gomega.HaveKey(caseLabel))
		t.Expect(event.Object.Data).To(gomega.BeEmpty())
	}
	tables := t.frames(t.ask(ctx, request{path: path, accept: tableType}))
	t.Expect(tables).To(gomega.HaveLen(2))
	for _, event := range tables {
		t.Expect(event.Object.Kind).To(gomega.Equal("Table"))
		t.Expect(event.Object.Rows).To(gomega.HaveLen(1))
	}
	t.Expect(tables[0].Object.ColumnDefinitions).NotTo(gomega.BeEmpty())
	t.Expect(tables[1].Object.ColumnDefinitions).To(gomega.BeEmpty())
}
