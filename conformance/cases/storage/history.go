package storage

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
)

var historyCases = []suite.Case{
	{ID: "S5/compacted-list-is-gone", Failure: true, Needs: suite.Launch, Serial: true, Test: compactedListIsGone,
		Source: "k8s.io/apiserver/pkg/storage/etcd3/errors.go, interpretListError and interpretWatchError",
		Promise: "After a compaction a list or watch from before it is answered 410 Expired, and one from after it " +
			"goes on."},
	{ID: "S5/continue-over-compaction", Failure: true, Needs: suite.Launch, Serial: true, Test: continueOverCompaction,
		Source: "k8s.io/apiserver/pkg/storage/etcd3/errors.go, handleCompactedErrorForPaging; " +
			"k8s.io/apiserver/pkg/storage/continue.go",
		Promise: "A continue token of before a compaction is answered 410 with another token, which goes on after " +
			"the same name in the present state."},
	{ID: "S5/watch-survives-compaction", Needs: suite.Launch, Serial: true, Test: watchSurvivesCompaction,
		Source:  "k8s.io/apiserver/pkg/storage/etcd3/watcher.go",
		Promise: "A watch that runs is not touched by a compaction: it has every change before and after it."},
	{ID: "S5/continue-token-is-checked", Level: suite.Core, Failure: true, Test: continueTokenIsChecked,
		Source: "k8s.io/apiserver/pkg/storage/continue.go, DecodeContinue; " +
			"k8s.io/apiserver/pkg/storage/interfaces.go, ValidateListOptions",
		Promise: "A continue token with a path that leads out of its collection, without a version or with another " +
			"form is refused with 400, as is one together with a resourceVersion."},
}

// withoutCache is a control plane that asks its store for everything.
func withoutCache(ctx context.Context, t *suite.T) (*envtest.ControlPlane, *suite.T) {
	return t.Shared(ctx, "without-watch-cache", envtest.WithFlags("--watch-cache=false"))
}

func compactedListIsGone(ctx context.Context, t *suite.T) {
	cp, other := withoutCache(ctx, t)
	cms := other.ConfigMaps(ctx)
	before := cms.Make(ctx, "a").ResourceVersion
	cms.Change(ctx, "a", "second")
	cms.Make(ctx, "b")
	t.Must(cp.Compact(ctx), "compact the store")
	exact := func(version string) suite.Answer {
		return other.Get(ctx, cms.Path()+"?resourceVersionMatch=Exact&resourceVersion="+version)
	}
	gone := t.ExpectStatus(exact(before), suite.Expired)
	t.Expect(gone.Message).To(gomega.Equal("The resourceVersion for the provided list is too old."))
	t.Expect(gone.Continue).To(gomega.BeEmpty())
	late := t.Watch(ctx, cms.Watch, cms.Mine(suite.From(before)))
	event := late.Next(ctx)
	t.Expect(event.Type).To(gomega.Equal(watch.Error))
	t.Expect(apierrors.FromObject(event.Object)).To(suite.BeStatus(suite.Expired))
	t.Expect(late.Ended(ctx)).To(gomega.BeEmpty())

	now := cms.MustList(ctx, cms.Mine()).ResourceVersion
	t.Expect(exact(now).Code).To(gomega.Equal(http.StatusOK), "%s", exact(now))
	running := t.Watch(ctx, cms.Watch, cms.Mine(suite.From(now)))
	cms.Make(ctx, "c")
	t.Expect(suite.Brief(running.Take(ctx, 1))).To(gomega.Equal([]string{"ADDED c"}))
}

func continueOverCompaction(ctx context.Context, t *suite.T) {
	cp, other := withoutCache(ctx, t)
	cms := other.ConfigMaps(ctx)
	cms.Make(ctx, "a", "b", "d", "e")
	path := cms.Path() + "?limit=2&labelSelector=" + cms.Mine().LabelSelector
	first := page(ctx, other, path)
	t.Expect(first.names()).To(gomega.Equal([]string{"a", "b"}))
	cms.Make(ctx, "aa", "c")
	t.Must(cp.Compact(ctx), "compact the store")

	got := other.Get(ctx, path+"&continue="+first.Metadata.Continue)
	gone := t.ExpectStatus(got, suite.Expired)
	t.Expect(gone.Message).To(gomega.HavePrefix("The provided continue parameter is too old"), "%s", got)
	t.Expect(gone.Continue).NotTo(gomega.Or(gomega.BeEmpty(), gomega.Equal(first.Metadata.Continue)), "%s", got)
	second := page(ctx, other, path+"&continue="+gone.Continue)
	t.Expect(second.names()).To(gomega.Equal([]string{"c", "d"}))
	t.Expect(t.Number(second.Metadata.ResourceVersion)).
		To(gomega.BeNumerically(">", t.Number(first.Metadata.ResourceVersion)))
	third := page(ctx, other, path+"&continue="+second.Metadata.Continue)
	t.Expect(third.names()).To(gomega.Equal([]string{"e"}))
	t.Expect(third.Metadata.ResourceVersion).To(gomega.Equal(second.Metadata.ResourceVersion))
	t.Expect(third.Metadata.Continue).To(gomega.BeEmpty())
}

// listed is a page of a list.
type listed struct {
	Metadata metav1.ListMeta
	Items    []struct{ Metadata metav1.ObjectMeta }
}

func page(ctx context.Context, t *suite.T, path string) listed {
	return suite.GetJSON[listed](ctx, t, path)
}

func (l listed) names() []string {
	var found []string
	for _, item := range l.Items {
		found = append(found, item.Metadata.Name)
	}
	return found
}

func watchSurvivesCompaction(ctx context.Context, t *suite.T) {
	cp, other := withoutCache(ctx, t)
	cms := other.ConfigMaps(ctx)
	start := cms.Make(ctx, "a").ResourceVersion
	running := t.Watch(ctx, cms.Watch, cms.Mine(suite.From(start)))
	first := cms.Change(ctx, "a", "second")
	t.Expect(suite.Exact(running.Take(ctx, 1))).To(gomega.Equal([]string{"MODIFIED a@" + first.ResourceVersion}))
	t.Must(cp.Compact(ctx), "compact the store")
	second := cms.Change(ctx, "a", "third")
	cms.Remove(ctx, "a")
	seen := running.Take(ctx, 2)
	t.Expect(suite.Exact(seen)[0]).To(gomega.Equal("MODIFIED a@" + second.ResourceVersion))
	t.Expect(suite.Brief(seen)[1]).To(gomega.Equal("DELETED a"))
}

func continueTokenIsChecked(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	last := cms.Make(ctx, "a", "b")
	refused := func(query string) {
		t.ExpectStatus(t.Get(ctx, cms.Path()+"?limit=1&"+query), suite.BadRequest)
	}
	for _, content := range []string{
		`{"v":"meta.k8s.io/v1","rv":1,"start":"../../secrets/x"}`, `{"v":"meta.k8s.io/v1","rv":0,"start":"a"}`,
		`{"v":"meta.k8s.io/v1","rv":1,"start":""}`, `{"v":"meta.k8s.io/v9","rv":1,"start":"a"}`, `{`,
	} {
		refused("continue=" + token(content))
	}
	present := token(fmt.Sprintf(`{"v":"meta.k8s.io/v1","rv":%s,"start":"a\u0000"}`, last.ResourceVersion))
	refused("continue=" + present + "&resourceVersion=" + last.ResourceVersion)
	rest := page(ctx, t, cms.Path()+"?continue="+present)
	t.Expect(slices.Contains(rest.names(), "b")).To(gomega.BeTrue(), "what follows a: %v", rest.names())
	t.Expect(slices.Contains(rest.names(), "a")).To(gomega.BeFalse(), "what follows a: %v", rest.names())
}
