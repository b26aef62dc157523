// Package storage has the cases about the store: what lies in it, under which key and in which
// form, and what a client sees of its history and its failures. They read the store with a client
// of etcd beside the server.
package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/onsi/gomega"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
)

// Cases are the cases of this area.
var Cases = slices.Concat([]suite.Case{
	{ID: "S5/resource-versions-compare", Level: suite.Core, Test: resourceVersionsCompare,
		Source: "KEP-5504; k8s.io/apimachinery/pkg/util/resourceversion/resourceversion.go, CompareResourceVersion",
		Promise: "resourceVersions of one resource are decimal numbers without leading zeros that grow with each " +
			"write, across names, namespaces, deletions and lists, for built-in and custom resources."},
	{ID: "S5/events-cohabit", Level: suite.Core, Test: eventsCohabit,
		Source: "k8s.io/kubernetes/pkg/kubeapiserver/default_storage_factory_builder.go, AddCohabitatingResources",
		Promise: "An Event is one object in both of its groups: what is written in one is read, watched and deleted " +
			"in the other."},
	{ID: "S5/keys-and-encodings", Needs: suite.Launch, Test: keysAndEncodings,
		Source: "k8s.io/apiserver/pkg/server/storage/storage_factory.go, ResourcePrefix; " +
			"k8s.io/kubernetes/pkg/kubeapiserver/default_storage_factory_builder.go, SpecialDefaultResourcePrefixes",
		Promise: "A built-in object lies at /registry/RESOURCE/NAMESPACE/NAME in protobuf, a custom one at " +
			"/registry/GROUP/RESOURCE/NAME in JSON, without the resourceVersion that it has when it is read."},
	{ID: "S5/prefix-and-media-type-are-flags", Needs: suite.Launch,
		Test:   prefixAndMediaTypeAreFlags,
		Source: "k8s.io/apiserver/pkg/server/options/etcd.go: --etcd-prefix and --storage-media-type",
		Promise: "--etcd-prefix moves all that a server stores, and --storage-media-type says how built-in objects " +
			"are encoded."},
	{ID: "S5/events-expire-by-lease", Needs: suite.Launch, Test: eventsExpireByLease,
		Source: "k8s.io/kubernetes/pkg/registry/core/event/storage/storage.go, TTLFunc; " +
			"k8s.io/apiserver/pkg/storage/etcd3/lease_manager.go",
		Promise: "An Event is stored with a lease of --event-ttl, and nothing else that is stored has one."},
	{ID: "S5/storage-version-is-rewritten", Needs: suite.Launch,
		Test: storageVersionIsRewritten,
		Source: "KEP-4192; k8s.io/apiserver/pkg/storage/etcd3/store.go, GuaranteedUpdate: stale data is written " +
			"even if nothing changes",
		Promise: "After the storage version changes, an object stays as it was stored until it is written, and " +
			"writing it without a change stores it in the new version."},
	{ID: "S5/storage-migration-is-validated", Failure: true, Since: "1.37",
		Test:   storageMigrationIsValidated,
		Source: "KEP-4192; k8s.io/kubernetes/pkg/apis/storagemigration/validation/validation.go",
		Promise: "A StorageVersionMigration names a resource for good, and can't have failed and succeeded, nor take " +
			"its success back."},
}, historyCases, encryptionCases, reloadCases, failureCases)

// entries are what lies in the store of a control plane below a prefix, by key.
func entries(ctx context.Context, t *suite.T, cp *envtest.ControlPlane, prefix string) map[string]*mvccpb.KeyValue {
	client, err := cp.Store().Client()
	t.Must(err, "reach the store")
	defer func() { _ = client.Close() }()
	answer, err := client.KV.Get(ctx, prefix, clientv3.WithPrefix())
	t.Must(err, "read the store below %s", prefix)
	found := map[string]*mvccpb.KeyValue{}
	for _, kv := range answer.Kvs {
		found[string(kv.Key)] = kv
	}
	return found
}

// entry is what lies at a key, which must be there.
func entry(ctx context.Context, t *suite.T, cp *envtest.ControlPlane, key string) *mvccpb.KeyValue {
	found := entries(ctx, t, cp, key)[key]
	t.Expect(found).NotTo(gomega.BeNil(), "nothing is stored at %s", key)
	return found
}

// storedJSON decodes what lies at a key, which must be JSON.
func storedJSON(ctx context.Context, t *suite.T, cp *envtest.ControlPlane, key string) map[string]any {
	content := map[string]any{}
	value := entry(ctx, t, cp, key).Value
	t.Must(json.Unmarshal(value, &content), "decode what is stored at %s: %q", key, value)
	return content
}

func resourceVersionsCompare(ctx context.Context, t *suite.T) {
	cms := t.ConfigMaps(ctx)
	outside := t.Kube.CoreV1().ConfigMaps(metav1.NamespaceDefault)
	last := cms.Make(ctx, "a").ResourceVersion
	grows := func(what, version string) {
		order, err := resourceversion.CompareResourceVersion(version, last)
		t.Expect(err).NotTo(gomega.HaveOccurred(), "after %s: %q and %q", what, version, last)
		t.Expect(order).To(gomega.Equal(1), "after %s: %q is not later than %q", what, version, last)
		last = version
	}
	grows("an update", cms.Change(ctx, "a", "second").ResourceVersion)
	grows("another name", cms.Make(ctx, "b").ResourceVersion)
	stranger := t.Name + "-stranger"
	created := suite.Create(ctx, t, outside.Create, cms.Object(stranger, "first"))
	grows("another namespace", created.ResourceVersion)
	cms.Remove(ctx, "a")
	grows("a deletion", cms.MustList(ctx, cms.Mine()).ResourceVersion)
	grows("a name that comes back", cms.Make(ctx, "a").ResourceVersion)

	w := t.Install(ctx, t.WidgetCRD())
	last = w.Make(ctx, "one").GetResourceVersion()
	changed, err := w.Merge(ctx, "one", `{"spec":{"size":1}}`)
	t.Must(err, "change Widget one")
	grows("an update of a custom resource", changed.GetResourceVersion())
	t.Must(w.Delete(ctx, "one", metav1.DeleteOptions{}), "delete Widget one")
	grows("a deletion of a custom resource", w.MustList(ctx).GetResourceVersion())
}

// event is an Event of the newer group in the case's namespace.
func event(t *suite.T, namespace string) map[string]any {
	return map[string]any{
		"apiVersion": "events.k8s.io/v1", "kind": "Event",
		"metadata":            map[string]any{"name": "snow", "namespace": namespace},
		"eventTime":           "2026-01-01T00:00:00.000000Z",
		"regarding":           map[string]any{"kind": "ConfigMap", "name": "a", "namespace": namespace},
		"reportingController": "conformance.snowglobe.test/weather", "reportingInstance": t.Name,
		"action": "Falls", "reason": "Cold", "type": "Normal", "note": "it snows",
	}
}

// createEvent creates it, until the case ends.
func createEvent(ctx context.Context, t *suite.T) (namespace string) {
	namespace = t.Namespace(ctx)
	t.AnsweredTo(ctx, suite.Request{Method: "POST", Path: "/apis/events.k8s.io/v1/namespaces/" + namespace + "/events",
		Body: event(t, namespace)}, 201)
	return namespace
}

func eventsCohabit(ctx context.Context, t *suite.T) {
	old := t.Kube.CoreV1().Events(t.Namespace(ctx))
	list := suite.List(ctx, t, old.List, metav1.ListOptions{})
	events := t.Watch(ctx, old.Watch, metav1.ListOptions{ResourceVersion: list.ResourceVersion,
		FieldSelector: "metadata.name=snow"})
	namespace := createEvent(ctx, t)
	t.Expect(suite.Brief(events.Take(ctx, 1))).To(gomega.Equal([]string{"ADDED snow"}))

	read, err := old.Get(ctx, "snow", metav1.GetOptions{})
	t.Expect(err).NotTo(gomega.HaveOccurred(), "read it in the core group")
	newer := suite.Get(ctx, t, t.Kube.EventsV1().Events(namespace).Get, "snow")
	t.Expect(read.UID).To(gomega.Equal(newer.UID))
	t.Expect(read.ResourceVersion).To(gomega.Equal(newer.ResourceVersion))
	t.Expect(read.InvolvedObject).To(gomega.Equal(newer.Regarding))
	t.Expect(read.Message).To(gomega.Equal("it snows"))
	t.Expect(read.ReportingController).To(gomega.Equal(newer.ReportingController))
	t.Expect(newer.Note).To(gomega.Equal("it snows"))

	t.Must(old.Delete(ctx, "snow", metav1.DeleteOptions{}), "delete it in the core group")
	_, err = t.Kube.EventsV1().Events(namespace).Get(ctx, "snow", metav1.GetOptions{})
	t.Expect(err).To(suite.BeStatus(suite.NotFound))
}

// protobuf begins what is stored in protobuf.
const protobuf = "k8s\x00"

func keysAndEncodings(ctx context.Context, t *suite.T) {
	cp, other := t.Shared(ctx, "defaults")
	cms := other.ConfigMaps(ctx)
	created := cms.Make(ctx, "a")
	kv := entry(ctx, t, cp, "/registry/configmaps/"+cms.Namespace+"/a")
	t.Expect(string(kv.Value)).To(gomega.HavePrefix(protobuf))
	t.Expect(fmt.Sprint(kv.ModRevision)).To(gomega.Equal(created.ResourceVersion),
		"the resourceVersion is the store's revision")
	t.Expect(string(kv.Value)).To(gomega.And(gomega.ContainSubstring("ConfigMap"),
		gomega.ContainSubstring(string(created.UID))))
	other.Served(ctx, "/api/v1/namespaces/default/services/kubernetes")
	for _, key := range []string{
		"/registry/namespaces/" + cms.Namespace, "/registry/services/specs/default/kubernetes",
		"/registry/apiregistration.k8s.io/apiservices/v1.", "/registry/clusterroles/cluster-admin",
	} {
		entry(ctx, t, cp, key)
	}
	w := other.Install(ctx, other.WidgetCRD())
	w.Make(ctx, "one", suite.At("red", "spec", "color"))
	entry(ctx, t, cp, "/registry/apiextensions.k8s.io/customresourcedefinitions/"+w.CRD.Name)
	content := storedJSON(ctx, t, cp, "/registry/"+w.Resource.Group+"/widgets/one")
	t.Expect(content).To(gomega.HaveKeyWithValue("apiVersion", w.Resource.GroupVersion().String()))
	t.Expect(content).To(gomega.HaveKeyWithValue("spec", map[string]any{"color": "red"}))
	t.Expect(content["metadata"]).NotTo(gomega.HaveKey("resourceVersion"))
	cms.Remove(ctx, "a")
	t.Expect(entries(ctx, t, cp, "/registry/configmaps/"+cms.Namespace+"/a")).To(gomega.BeEmpty(), "after the deletion")
}

func prefixAndMediaTypeAreFlags(ctx context.Context, t *suite.T) {
	cp, other := t.Shared(ctx, "elsewhere-in-json",
		envtest.WithFlags("--etcd-prefix=/elsewhere", "--storage-media-type=application/json"))
	cms := other.ConfigMaps(ctx)
	cms.Make(ctx, "a")
	content := storedJSON(ctx, t, cp, "/elsewhere/configmaps/"+cms.Namespace+"/a")
	t.Expect(content).To(gomega.HaveKeyWithValue("kind", "ConfigMap"))
	t.Expect(content).To(gomega.HaveKeyWithValue("data", map[string]any{"content": "first"}))
	t.Expect(entries(ctx, t, cp, "/registry/")).To(gomega.BeEmpty(), "what is stored where it was not asked to be")
	t.Expect(cms.Read(ctx, "a").Data).To(gomega.HaveKeyWithValue("content", "first"))
}

func eventsExpireByLease(ctx context.Context, t *suite.T) {
	cp, other := t.Shared(ctx, "defaults")
	namespace := createEvent(ctx, other)
	other.ConfigMaps(ctx).Make(ctx, "a")
	stored := entry(ctx, t, cp, "/registry/events/"+namespace+"/snow")
	t.Expect(string(stored.Value)).To(gomega.HavePrefix(protobuf))
	t.Expect(stored.Lease).NotTo(gomega.BeZero())
	t.Expect(entry(ctx, t, cp, "/registry/configmaps/"+namespace+"/a").Lease).To(gomega.BeZero())
	client, err := cp.Store().Client()
	t.Must(err, "reach the store")
	defer func() { _ = client.Close() }()
	lease, err := client.TimeToLive(ctx, clientv3.LeaseID(stored.Lease))
	t.Must(err, "read the lease")
	// The lease manager reuses leases, and so makes them up to a minute longer.
	t.Expect(lease.GrantedTTL).To(gomega.And(gomega.BeNumerically(">=", 3600), gomega.BeNumerically("<=", 3780)))
	_, err = other.Kube.CoreV1().Events(namespace).Get(ctx, "snow", metav1.GetOptions{})
	t.Expect(err).NotTo(gomega.HaveOccurred())
}

func storageVersionIsRewritten(ctx context.Context, t *suite.T) {
	cp, other := t.Shared(ctx, "defaults")
	w := other.Install(ctx, other.WidgetCRD(func(definition *suite.CRD) {
		definition.Spec.Versions = append(definition.Spec.Versions, suite.WidgetVersion("v2", false))
	}))
	w.Make(ctx, "one", suite.At("red", "spec", "color"))
	key := "/registry/" + w.Resource.Group + "/widgets/one"
	stored := func() string {
		return strings.TrimPrefix(fmt.Sprint(storedJSON(ctx, t, cp, key)["apiVersion"]), w.Resource.Group+"/")
	}
	t.Expect(stored()).To(gomega.Equal("v1"))
	definition := suite.Get(ctx, t, other.CRDs.Get, w.CRD.Name)
	definition.Spec.Versions[0].Storage, definition.Spec.Versions[1].Storage = false, true
	changed := suite.Update(ctx, t, other.CRDs.Update, definition)
	t.Expect(changed.Status.StoredVersions).To(gomega.Equal([]string{"v1", "v2"}))
	t.Expect(stored()).To(gomega.Equal("v1"), "what nobody has written")

	before := w.Read(ctx, "one")
	t.Eventually(ctx, func() string {
		_, err := w.Update(ctx, w.Read(ctx, "one"), metav1.UpdateOptions{})
		t.Must(err, "write Widget one without a change")
		return stored()
	}).Should(gomega.Equal("v2"), "stored by writes without a change")
	after := w.Read(ctx, "one")
	t.Expect(after.GetResourceVersion()).NotTo(gomega.Equal(before.GetResourceVersion()))
	t.Expect(after.GetGeneration()).To(gomega.Equal(before.GetGeneration()))
	t.Expect(suite.Value(after, "spec")).To(gomega.Equal(suite.Value(before, "spec")))
}

// migrations is the collection of StorageVersionMigrations.
const migrations = "/apis/storagemigration.k8s.io/v1/storageversionmigrations"

func storageMigrationIsValidated(ctx context.Context, t *suite.T) {
	metadata := map[string]any{"name": t.Name}
	send := func(method, path string, resource string, conditions ...any) suite.Answer {
		return t.Ask(ctx, suite.Request{Method: method, Path: path, Body: map[string]any{
			"apiVersion": "storagemigration.k8s.io/v1", "kind": "StorageVersionMigration", "metadata": metadata,
			"spec": map[string]any{"resource": map[string]any{"group": "conformance.snowglobe.test",
				"resource": resource}},
			"status": map[string]any{"resourceVersion": "5", "conditions": conditions},
		}})
	}
	refused := func(got suite.Answer, field string) {
		status := t.ExpectStatus(got, suite.Invalid)
		t.Expect(status.Details.Causes).To(gomega.ContainElement(gomega.HaveField("Field", field)), "%s", got)
	}
	refused(send("POST", migrations, ""), "spec.resource.resource")
	refused(send("POST", migrations, "Things"), "spec.resource.resource")
	created := t.ExpectCode(send("POST", migrations, "things"), 201)
	one := migrations + "/" + t.Name
	// An update has to carry the version, which is that of the answer before.
	follow := func(got suite.Answer) {
		var written struct{ Metadata metav1.ObjectMeta }
		t.Must(json.Unmarshal(got.Body, &written), "decode: %s", got)
		metadata["resourceVersion"] = written.Metadata.ResourceVersion
	}
	follow(created)
	refused(send("PUT", one, "others"), "spec")
	condition := func(kind string, status corev1.ConditionStatus) any {
		return map[string]any{"type": kind, "status": status, "reason": "Case", "message": "",
			"lastTransitionTime": "2026-01-01T00:00:00Z"}
	}
	refused(send("PUT", one+"/status", "things", condition("Succeeded", "True"), condition("Failed", "True")),
		"status.conditions")
	done := t.ExpectCode(send("PUT", one+"/status", "things", condition("Succeeded", "True")), 200)
	follow(done)
	refused(send("PUT", one+"/status", "things", condition("Succeeded", "False")), "status.conditions")
}
