package aggregated_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func joined(code int, body string) string { return fmt.Sprint(code, " ", body) }

func TestObject(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		ctx, client := t.Context(), w.dynamic().Resource(widgets).Namespace("default")
		fresh := widget("default", "a", 1)
		fresh.Object["status"] = map[string]any{"ready": true}
		one, err := client.Create(ctx, fresh, metav1.CreateOptions{})
		require.NoError(t, err)
		assert.NotEmpty(t, one.GetUID())
		assert.False(t, one.GetCreationTimestamp().Time.IsZero())
		assert.Equal(t, int64(1), one.GetGeneration())
		assert.NotContains(t, one.Object, "status", "which is a subresource")
		_, err = client.Create(ctx, fresh, metav1.CreateOptions{})
		assert.True(t, apierrors.IsAlreadyExists(err), err)

		two := one.DeepCopy()
		require.NoError(t, unstructured.SetNestedField(two.Object, int64(2), "spec", "size"))
		two.Object["status"] = map[string]any{"ready": true}
		two.SetUID("")
		two, err = client.Update(ctx, two, metav1.UpdateOptions{})
		require.NoError(t, err)
		assert.Equal(t, []any{one.GetUID(), int64(2), false},
			[]any{two.GetUID(), two.GetGeneration(), two.Object["status"] != nil})
		_, err = client.Update(ctx, one, metav1.UpdateOptions{})
		assert.True(t, apierrors.IsConflict(err), err)

		again, err := client.Update(ctx, two, metav1.UpdateOptions{})
		require.NoError(t, err)
		assert.Equal(t, two.GetResourceVersion(), again.GetResourceVersion(), "nothing is new")

		three := two.DeepCopy()
		require.NoError(t, unstructured.SetNestedField(three.Object, int64(3), "spec", "size"))
		three.Object["status"] = map[string]any{"ready": true}
		three, err = client.UpdateStatus(ctx, three, metav1.UpdateOptions{})
		require.NoError(t, err)
		assert.Equal(t, map[string]any{"ready": true}, three.Object["status"])
		assert.Equal(t, map[string]any{"size": int64(2)}, three.Object["spec"], "which is no part of the status")
		assert.Equal(t, int64(2), three.GetGeneration())

		four, err := client.Patch(ctx, "a", types.MergePatchType,
			[]byte(`{"spec":{"size":4},"metadata":{"labels":null}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		assert.Equal(t, map[string]any{"size": int64(4)}, four.Object["spec"])
		assert.Empty(t, four.GetLabels())
		assert.NotNil(t, four.Object["status"])
		five, err := client.Patch(ctx, "a", types.JSONPatchType,
			[]byte(`[{"op":"replace","path":"/status/ready","value":false}]`), metav1.PatchOptions{}, "status")
		require.NoError(t, err)
		assert.Equal(t, map[string]any{"ready": false}, five.Object["status"])

		old, err := w.dynamic().Resource(widgets.GroupResource().WithVersion("v1beta1")).Namespace("default").
			Get(ctx, "a", metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, "example.com/v1beta1", old.GetAPIVersion())
		assert.Equal(t, five.Object["spec"], old.Object["spec"])

		wrong := types.UID("wrong")
		err = client.Delete(ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}})
		assert.True(t, apierrors.IsConflict(err), err)
		uid := five.GetUID()
		require.NoError(t, client.Delete(ctx, "a",
			metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}))
		_, err = client.Get(ctx, "a", metav1.GetOptions{})
		assert.True(t, apierrors.IsNotFound(err), err)
	})
}

// TestFinalizers keeps a deleted object until its finalizers are gone.
func TestFinalizers(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		ctx, client := t.Context(), w.dynamic().Resource(widgets).Namespace("default")
		guarded := widget("default", "a", 1)
		guarded.SetFinalizers([]string{"example.com/guard"})
		w.put(guarded)
		for range 2 {
			require.NoError(t, client.Delete(ctx, "a", metav1.DeleteOptions{}))
			object, err := client.Get(ctx, "a", metav1.GetOptions{})
			require.NoError(t, err)
			assert.NotNil(t, object.GetDeletionTimestamp())
			assert.Equal(t, int64(2), object.GetGeneration())
		}
		_, err := client.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
			metav1.PatchOptions{})
		require.NoError(t, err)
		_, ok := w.Get(widgets.GroupResource(), "default", "a")
		assert.False(t, ok)
	})
}

func TestDryRun(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		ctx, client := t.Context(), w.dynamic().Resource(widgets).Namespace("default")
		dry := []string{metav1.DryRunAll}
		_, err := client.Create(ctx, widget("default", "a", 1), metav1.CreateOptions{DryRun: dry})
		require.NoError(t, err)
		_, err = client.Get(ctx, "a", metav1.GetOptions{})
		assert.True(t, apierrors.IsNotFound(err), err)
		w.put(widget("default", "a", 1))
		patched, err := client.Patch(ctx, "a", types.MergePatchType, []byte(`{"spec":{"size":2}}`),
			metav1.PatchOptions{DryRun: dry})
		require.NoError(t, err)
		assert.Equal(t, map[string]any{"size": int64(2)}, patched.Object["spec"])
		require.NoError(t, client.Delete(ctx, "a", metav1.DeleteOptions{DryRun: dry}))
		object, err := client.Get(ctx, "a", metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, map[string]any{"size": int64(1)}, object.Object["spec"])
	})
}

func TestDeleteCollection(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		w.put(widget("default", "a", 1), widget("default", "b", 2), widget("default", "c", 1), widget("other", "a", 1))
		client := w.dynamic().Resource(widgets)
		require.NoError(t, client.Namespace("default").DeleteCollection(t.Context(), metav1.DeleteOptions{},
			metav1.ListOptions{LabelSelector: "size=1"}))
		list, err := client.List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		assert.Equal(t, []string{"default/b", "other/a"}, names(list))
	})
}

// TestNoNamespace is about objects of the cluster, and about names that the server
// makes.
func TestNoNamespace(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		gadget := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "other.example.com/v1",
			"kind": "Gadget", "status": "new"}}
		gadget.SetGenerateName("gadget-")
		client := w.dynamic().Resource(gadgets)
		made, err := client.Create(t.Context(), gadget, metav1.CreateOptions{})
		require.NoError(t, err)
		assert.Len(t, made.GetName(), len("gadget-12345"))
		assert.Equal(t, "new", made.Object["status"], "which is no subresource here")
		assert.True(t, w.Remove(gadgets.GroupResource(), "", made.GetName()))
		assert.False(t, w.Remove(gadgets.GroupResource(), "", made.GetName()))
	})
}

func TestRefused(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		w.put(widget("default", "a", 1))
		const collection, one = "/apis/example.com/v1/namespaces/default/widgets",
			"/apis/example.com/v1/namespaces/default/widgets/a"
		const head = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":`
		for _, c := range []struct{ method, path, body, contentType, want string }{
			{"GET", "/api", "", "", "404 NotFound"},
			{"GET", "/apis/gone.example.com", "", "", "404 NotFound"},
			{"GET", "/apis/example.com/v2", "", "", "404 NotFound"},
			{"POST", "/apis", "", "", "404 NotFound"},
			{"GET", "/apis/example.com/v1/gadgets", "", "", "404 NotFound"},
			{"GET", "/apis/example.com/v1/widgets/a", "", "", "404 NotFound"},
			{"GET", one + "/scale", "", "", "404 NotFound"},
			{"GET", one + "/status/more/and/more", "", "", "404 NotFound"},
			{"GET", "/apis/other.example.com/v1/namespaces/default/gadgets", "", "", "404 NotFound"},
			{"GET", "/apis/other.example.com/v1/gadgets/a/status", "", "", "404 NotFound"},
			{"GET", collection + "/gone", "", "", `404 NotFound widgets.example.com "gone" not found`},
			{"POST", "/apis/example.com/v1/widgets", "{}", "", "405 MethodNotAllowed"},
			{"DELETE", "/apis/example.com/v1/widgets", "", "", "405 MethodNotAllowed"},
			{"PUT", collection, "{}", "", "405 MethodNotAllowed"},
			{"DELETE", one + "/status", "", "", "405 MethodNotAllowed"},
			{"POST", collection, "apiVersion: example.com/v1", "application/yaml", "415 UnsupportedMediaType"},
			{"PUT", one, "x", "application/vnd.kubernetes.protobuf", "415 UnsupportedMediaType"},
			{"PATCH", one, "{}", "application/strategic-merge-patch+json", "415 UnsupportedMediaType"},
			{"PATCH", one, "{}", "application/apply-patch+yaml", "415 UnsupportedMediaType"},
			{"PATCH", one, "{}", "application/json-patch+json", "400 BadRequest the JSON patch"},
			{"PATCH", one, `[{"op":"remove","path":"/gone"}]`, "application/json-patch+json", "422 Invalid"},
			{"POST", collection, "[]", "", "400 BadRequest the body is no object in JSON"},
			{"POST", collection, head + `"a"}`, "", "400 BadRequest metadata is no object"},
			{"POST", collection, `{"apiVersion":"v1","kind":"Pod"}`, "",
				"400 BadRequest the object provided is a /v1, Kind=Pod"},
			{"POST", collection, head + `{"namespace":"other","name":"b"}}`, "",
				"400 BadRequest the namespace of the provided object (other)"},
			{"POST", collection, head + `{"name":"b","resourceVersion":"1"}}`, "",
				"400 BadRequest resourceVersion should not be set"},
			{"POST", collection, head + `{}}`, "", "422 Invalid Widget.example.com \"\" is invalid: metadata.name: " +
				"Required value"},
			{"POST", collection, head + `{"name":"a/b"}}`, "", "422 Invalid"},
			{"POST", collection + "?dryRun=Some", head + `{"name":"b"}}`, "", `400 BadRequest dryRun "Some"`},
			{"POST", collection, strings.Repeat(" ", 4<<20), "", "413 RequestEntityTooLarge"},
			{"PUT", one, head + `{"name":"b"}}`, "", "400 BadRequest the name of the object (b)"},
			{"PUT", collection + "/gone", head + `{"name":"gone"}}`, "", "404 NotFound"},
			{"DELETE", collection + "/gone", "", "", "404 NotFound"},
			{"DELETE", one, "[]", "", "400 BadRequest the delete options"},
			{"GET", collection + "?limit=x", "", "", `400 BadRequest strconv.ParseInt: parsing "x": invalid syntax`},
			{"GET", collection + "?resourceVersion=-1", "", "", "400 BadRequest resourceVersion"},
			{"GET", collection + "?resourceVersion=1000", "", "", "504 Timeout Timeout: Too large resource version"},
			{"GET", collection + "?resourceVersionMatch=Exact", "", "",
				`422 Invalid ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden`},
			{"GET", collection + "?resourceVersionMatch=Roughly&resourceVersion=1", "", "",
				`422 Invalid ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Unsupported value: "Roughly"`},
			{"GET", collection + "?continue=x", "", "", "400 BadRequest continue key"},
			{"GET", collection + "?labelSelector=a%3D%3D%3Db", "", "",
				"400 BadRequest unable to parse requirement: found '='"},
			{"GET", collection + "?fieldSelector=spec.size%3D1", "", "",
				`400 BadRequest "spec.size" is not a known field selector`},
			{"GET", collection + "?watch=1&sendInitialEvents=true", "", "",
				`422 Invalid ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires`},
			{"GET",
				collection + "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=1000",
				"", "", "504 Timeout Timeout: Too large resource version"},
			{"GET", collection + "?watch=1&timeoutSeconds=x", "", "",
				`400 BadRequest strconv.ParseInt: parsing "x": invalid syntax`},
		} {
			code, body := w.answer(c.method, c.path, c.body, "Content-Type", c.contentType)
			var status metav1.Status
			require.NoError(t, json.Unmarshal([]byte(body), &status), body)
			assert.Equal(t, "Status", status.Kind)
			got := joined(code, string(status.Reason)+" "+status.Message)
			assert.True(t, strings.HasPrefix(got, c.want), "%s %s: %s, want %s", c.method, c.path, got, c.want)
		}
		code, body := w.answer("GET", collection, "", "Accept", "application/vnd.kubernetes.protobuf")
		assert.Equal(t, 406, code, body)
		code, body = w.answer("GET", "/readyz", "")
		assert.Equal(t, "200 ok", joined(code, body))
	})
}

func TestPut(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		for want, object := range map[string]*unstructured.Unstructured{
			"the server has no such kind": {Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}},
			"an object has a name":        widget("default", "", 1),
			"namespace if its kind":       widget("", "a", 1),
			"put": {Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget",
				"metadata": map[string]any{"namespace": "a", "name": "b"}, "spec": func() {}}},
		} {
			_, err := w.Put(object)
			assert.ErrorContains(t, err, want)
		}
		loose := widget("default", "a", 1)
		loose.Object["spec"] = map[string]any{"size": 1, "list": []string{"not as JSON has it"}}
		w.put(loose)
		stored, err := w.Put(stripped(loose))
		require.NoError(t, err)
		object, ok := w.Get(widgets.GroupResource(), "default", "a")
		require.True(t, ok)
		assert.Equal(t, stored.Object, object.Object)
		assert.Equal(t, int64(1), object.Object["spec"].(map[string]any)["size"])
		list, err := w.dynamic().Resource(widgets).List(context.Background(), metav1.ListOptions{})
		require.NoError(t, err)
		assert.Len(t, list.Items, 1)
	})
}

// stripped is an object without its labels.
func stripped(object *unstructured.Unstructured) *unstructured.Unstructured {
	next := &unstructured.Unstructured{Object: map[string]any{}}
	for name, value := range object.Object {
		next.Object[name] = value
	}
	next.Object["metadata"] = map[string]any{"namespace": object.GetNamespace(), "name": object.GetName()}
	return next
}
