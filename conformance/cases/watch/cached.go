package watch

import (
	"context"
	"fmt"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"snowglobe.test/conformance/suite"
)

var cachedCases = []suite.Case{
	{ID: "S6/bookmark-passes-what-a-selector-hides", Test: bookmarkPassesWhatASelectorHides,
		Source: "k8s.io/apiserver/pkg/storage/cacher/cacher.go, dispatchEvents: bookmarks go to all watchers; " +
			"k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go, sendWatchCacheEvent",
		Promise: "A bookmark brings a watch whose selector matches nothing past the writes that it does not see, so " +
			"that it can resume from there."},
	{ID: "S6/streaming-list-from-a-version", Failure: true, Test: streamingListFromAVersion,
		Source: "KEP-3157; k8s.io/apiserver/pkg/storage/cacher/cacher.go, " +
			"getBookmarkAfterResourceVersionLockedFunc; k8s.io/apiserver/pkg/storage/cacher/watch_cache.go, " +
			"WaitUntilFreshAndGetList",
		Promise: "A streaming list from a resourceVersion, or from 0, has the whole state and one bookmark no older " +
			"than that; from a version that is in the future it fails with ResourceVersionTooLarge; without initial " +
			"events it has only what follows."},
	{ID: "S6/slow-watcher-is-ended", Failure: true, Needs: suite.Launch, Test: slowWatcherIsEnded,
		Source: "k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go, add: forget; " +
			"k8s.io/apiserver/pkg/storage/cacher/cacher.go, dispatchEvent",
		Promise: "A watch whose client does not read is ended, after events without a gap, and others have " +
			"every event."},
	{ID: "S6/watch-in-protobuf", Test: watchInProtobuf,
		Source: "k8s.io/apiserver/pkg/endpoints/handlers/watch.go, serveWatchHandler: the stream's serializer; " +
			"k8s.io/apiserver/pkg/storage/cacher/caching_object.go",
		Promise: "A watch in protobuf has the same events and objects as one in JSON, whatever the order in which " +
			"they are encoded."},
}

func bookmarkPassesWhatASelectorHides(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	start := cms.MustList(ctx, cms.Mine()).ResourceVersion
	blind := t.Watch(ctx, cms.Watch, cms.Mine(suite.From(start), func(opts *metav1.ListOptions) {
		opts.LabelSelector += ",color=none"
		opts.AllowWatchBookmarks, opts.TimeoutSeconds = true, new(int64(3))
	}))
	last := cms.Make(ctx, "a", "b")
	object := blind.NextConfigMap(ctx, watch.Bookmark)
	t.Expect(t.Number(object.ResourceVersion)).To(gomega.BeNumerically(">=", t.Number(last.ResourceVersion)),
		"the bookmark and the last write")
	t.Expect(object.Data).To(gomega.BeEmpty())
	resumed := t.Watch(ctx, cms.Watch, cms.Mine(suite.From(object.ResourceVersion)))
	cms.Make(ctx, "c")
	t.Expect(suite.Brief(resumed.Take(ctx, 1))).To(gomega.Equal([]string{"ADDED c"}))
}

func streamingListFromAVersion(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	first := cms.Make(ctx, "a")
	last := cms.Make(ctx, "b")
	for _, version := range []string{"0", first.ResourceVersion, last.ResourceVersion} {
		events := t.Watch(ctx, cms.Watch, cms.Mine(streaming, suite.From(version)))
		seen := events.Next(ctx)
		names := []string{}
		for ; seen.Type == watch.Added; seen = events.Next(ctx) {
			names = append(names, seen.Object.(*corev1.ConfigMap).Name)
		}
		t.Expect(seen.Type).To(gomega.Equal(watch.Bookmark), "from %s", version)
		t.Expect(seen.Object.(*corev1.ConfigMap).Annotations).
			To(gomega.HaveKeyWithValue(metav1.InitialEventsAnnotationKey, "true"))
		t.Expect(t.Number(suite.VersionOf(seen.Object))).To(gomega.BeNumerically(">=", t.Number(version)))
		if version != "0" { // a cache that lags may lack what is later
			t.Expect(names).To(gomega.ContainElement("a"), "from %s", version)
		}
		if version == last.ResourceVersion {
			t.Expect(names).To(gomega.ConsistOf("a", "b"), "from %s", version)
		}
		events.Stop()
	}
	future := fmt.Sprint(t.Number(last.ResourceVersion) + 1_000_000_000)
	failed := t.Watch(ctx, cms.Watch, cms.Mine(streaming, suite.From(future))).Next(ctx)
	t.Expect(failed.Type).To(gomega.Equal(watch.Error))
	err := apierrors.FromObject(failed.Object)
	t.Expect(err).To(suite.BeStatus(suite.Timeout))
	t.Expect(suite.StatusOf(err).Details.Causes).
		To(gomega.ContainElement(gomega.HaveField("Type", metav1.CauseTypeResourceVersionTooLarge)))

	only := t.Watch(ctx, cms.Watch, cms.Mine(streaming, suite.From(last.ResourceVersion),
		func(opts *metav1.ListOptions) {
			opts.SendInitialEvents = new(false)
		}))
	cms.Make(ctx, "c")
	t.Expect(suite.Brief(only.Take(ctx, 1))).To(gomega.Equal([]string{"ADDED c"}))
}

func slowWatcherIsEnded(ctx context.Context, t *suite.T) {
	cp, other := t.Launch(ctx)
	cms := other.ConfigMaps(ctx)
	start := cms.MustList(ctx, cms.Mine()).ResourceVersion
	reader := other.As("slow", "system:masters")
	held := t.Inject(cp, "hold watch/configmaps caller=slow")
	slow := t.Watch(ctx, reader.Kube.CoreV1().ConfigMaps(cms.Namespace).Watch, cms.Mine(suite.From(start)))
	fast := t.Watch(ctx, cms.Watch, cms.Mine(suite.From(start)))
	const writes = 200
	var want, all []string
	for i := range writes {
		want = append(want, fmt.Sprintf("ADDED n%03d", i))
		cms.Make(ctx, fmt.Sprintf("n%03d", i))
		all = append(all, suite.Brief(fast.Take(ctx, 1))...)
	}
	t.Expect(all).To(gomega.Equal(want))
	held.Remove()
	seen := suite.Brief(slow.Ended(ctx))
	t.Expect(len(seen)).To(gomega.BeNumerically("<", writes), "events of the slow watch")
	t.Expect(seen).To(gomega.Equal(want[:len(seen)]), "the slow watch has no gap")
}

func watchInProtobuf(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	start := cms.MustList(ctx, cms.Mine()).ResourceVersion
	config := rest.CopyConfig(t.Config)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	t.Must(err, "client for protobuf")
	binary := t.Watch(ctx, client.CoreV1().ConfigMaps(cms.Namespace).Watch, cms.Mine(suite.From(start)))
	text := t.Watch(ctx, cms.Watch, cms.Mine(suite.From(start)))
	told := story(ctx, cms)
	cms.Remove(ctx, "x")
	fromText, fromBinary := text.Take(ctx, len(told)+1), binary.Take(ctx, len(told)+1)
	t.Expect(suite.Exact(fromText)[:len(told)]).To(gomega.Equal(told))
	for i := range fromText {
		one, other := fromText[i].Object.(*corev1.ConfigMap), fromBinary[i].Object.(*corev1.ConfigMap)
		one.TypeMeta, other.TypeMeta = metav1.TypeMeta{}, metav1.TypeMeta{}
		t.Expect(fromBinary[i]).To(gomega.Equal(fromText[i]), "event %d", i)
	}
}
