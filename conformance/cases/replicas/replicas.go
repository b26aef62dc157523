// Package replicas has the cases about several servers on one store: each writes at one server and
// looks at another, whose caches and informers have to follow.
package replicas

import (
	"context"
	"net/http"
	"slices"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
)

// Cases are the cases of this area.
var Cases = slices.Concat(sharedCases, membershipCases)

var sharedCases = suite.Launching([]suite.Case{
	{ID: "S6/write-at-one-server-is-read-at-another", Level: suite.Core, Test: writeIsReadAtAnother,
		Source: "KEP-2340; k8s.io/apiserver/pkg/storage/cacher/cacher.go, consistent reads",
		Promise: "What one server acknowledged, another gets and lists at once, as the same object at the same " +
			"resourceVersion."},
	{ID: "S6/watch-sees-the-writes-of-another-server", Level: suite.Core, Test: watchSeesOthers,
		Source: "k8s.io/apiserver/pkg/storage/cacher/cacher.go, over the watch of the store",
		Promise: "A watch at one server, begun where a list of another ended, sees each later change once and in " +
			"order, whichever server made it."},
	{ID: "S6/versions-compare-across-servers", Level: suite.Core, Test: versionsCompare,
		Source:  "KEP-5504; k8s.io/apiserver/pkg/storage/api_object_versioner.go, CompareResourceVersion",
		Promise: "resourceVersions of one resource grow with each write, and compare between servers."},
	{ID: "S12/conflict-is-seen-across-servers", Level: suite.Core, Failure: true, Test: conflictIsSeen,
		Source: "k8s.io/apiserver/pkg/storage/etcd3/store.go, GuaranteedUpdate",
		Promise: "An update at one server with the resourceVersion from before an update at another is 409, and a " +
			"name that another server has given is 409 AlreadyExists."},
	{ID: "S10/CRD-is-served-by-every-server", Level: suite.Core, Test: crdIsServedByAll,
		Source: "k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go, over the informer of CRDs",
		Promise: "A CRD created at one server is served by the others, which have the same objects, and is gone at " +
			"all when it is deleted at one."},
	{ID: "S3/cluster-ips-are-unique-across-servers", Level: suite.Core, Failure: true, Test: clusterIPsAreUnique,
		Source:  "KEP-1880; k8s.io/kubernetes/pkg/registry/core/service/ipallocator/ipallocator.go",
		Promise: "Servers give no cluster IP twice, and refuse with 422 the one that another has given."},
})

// pair returns targets for both servers of a control plane that cases share. They have one
// namespace.
func pair(ctx context.Context, beside *suite.T) (first, second *suite.T) {
	cp, t := beside.Shared(ctx, "replicas", envtest.WithReplicas(2))
	t.Namespace(ctx)
	return t.With(cp.Servers()[0].Config()), t.With(cp.Servers()[1].Config())
}

func writeIsReadAtAnother(ctx context.Context, beside *suite.T) {
	first, second := pair(ctx, beside)
	here, there := first.ConfigMaps(ctx), second.ConfigMaps(ctx)
	for _, name := range []string{"a", "b", "c"} {
		made := here.Make(ctx, name)
		list := there.MustList(ctx, there.Mine())
		first.Expect(suite.Names(list)).To(gomega.ContainElement(name), "the list at the other server is stale")
		read := there.Read(ctx, name)
		first.Expect(read.UID).To(gomega.Equal(made.UID))
		first.Expect(read.ResourceVersion).To(gomega.Equal(made.ResourceVersion))
	}
	there.Remove(ctx, "a")
	first.Expect(suite.Names(here.MustList(ctx, here.Mine()))).To(gomega.Equal([]string{"b", "c"}))
}

func watchSeesOthers(ctx context.Context, beside *suite.T) {
	first, second := pair(ctx, beside)
	here, there := first.ConfigMaps(ctx), second.ConfigMaps(ctx)
	here.Make(ctx, "before")
	list := here.MustList(ctx, here.Mine())
	events := second.Watch(ctx, there.Watch, there.Mine(suite.From(list.ResourceVersion)))
	here.Make(ctx, "one")
	there.Make(ctx, "two")
	there.Change(ctx, "one", "second")
	here.Change(ctx, "two", "second")
	there.Remove(ctx, "one")
	here.Make(ctx, "last")
	first.Expect(suite.Brief(events.Until(ctx, "ADDED", "last"))).To(gomega.Equal([]string{
		"ADDED one", "ADDED two", "MODIFIED one", "MODIFIED two", "DELETED one", "ADDED last",
	}))
}

func versionsCompare(ctx context.Context, beside *suite.T) {
	first, second := pair(ctx, beside)
	here, there := first.ConfigMaps(ctx), second.ConfigMaps(ctx)
	here.Make(ctx, "one")
	before := uint64(0)
	for i := range 6 {
		maps := []*suite.ConfigMaps{here, there}[i%2]
		version := first.Number(maps.Change(ctx, "one", string(rune('a'+i))).ResourceVersion)
		first.Expect(version).To(gomega.BeNumerically(">", before), "change %d has no later version", i)
		before = version
	}
	list := here.MustList(ctx, here.Mine())
	first.Expect(first.Number(list.ResourceVersion)).To(gomega.BeNumerically(">=", before))
}

func conflictIsSeen(ctx context.Context, beside *suite.T) {
	first, second := pair(ctx, beside)
	here, there := first.ConfigMaps(ctx), second.ConfigMaps(ctx)
	old := here.Make(ctx, "one")
	there.Change(ctx, "one", "theirs")
	old.Data["content"] = "ours"
	_, err := here.Update(ctx, old, metav1.UpdateOptions{})
	first.Expect(err).To(suite.BeStatus(suite.Conflict))
	first.Expect(here.Read(ctx, "one").Data).To(gomega.HaveKeyWithValue("content", "theirs"))
	_, err = there.Create(ctx, there.Object("one", "first"), metav1.CreateOptions{})
	first.Expect(err).To(suite.BeStatus(suite.AlreadyExists))
}

func crdIsServedByAll(ctx context.Context, beside *suite.T) {
	first, second := pair(ctx, beside)
	here := first.Install(ctx, first.WidgetCRD())
	second.Served(ctx, here.Path)
	there := second.WidgetsOf(here.CRD, "v1")
	made := here.Make(ctx, "one")
	first.Expect(there.Read(ctx, "one").GetUID()).To(gomega.Equal(made.GetUID()))
	here.RemoveCRD(ctx)
	for _, t := range []*suite.T{first, second} {
		t.Until(ctx, here.Path, http.StatusNotFound)
	}
}

func clusterIPsAreUnique(ctx context.Context, beside *suite.T) {
	first, second := pair(ctx, beside)
	seen := map[string]string{}
	var last string
	for i, name := range []string{"a", "b", "c", "d"} {
		t := []*suite.T{first, second}[i%2]
		last = t.MakeService(ctx, name).Spec.ClusterIP
		t.Expect(seen).NotTo(gomega.HaveKey(last), "Service %s has the cluster IP of another", name)
		seen[last] = name
	}
	_, err := first.TryService(ctx, "e", suite.ClusterIP(last))
	first.Expect(first.Causes(err)).To(gomega.Equal([]string{"spec.clusterIPs"}))
}
