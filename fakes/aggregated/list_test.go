package aggregated_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
)

// TestListPages reads a list in pages, all of which are of the time of the first.
func TestListPages(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		ctx, client := t.Context(), w.dynamic().Resource(widgets)
		w.put(widget("b", "a", 1), widget("a", "b", 1), widget("a", "a", 1), widget("a", "c", 1), widget("a", "a-b", 1))
		first, err := client.List(ctx, metav1.ListOptions{Limit: 2})
		require.NoError(t, err)
		assert.Equal(t, []string{"a/a", "a/a-b"}, names(first))
		require.NotNil(t, first.GetRemainingItemCount())
		assert.Equal(t, int64(3), *first.GetRemainingItemCount())

		require.True(t, w.Remove(widgets.GroupResource(), "a", "b"))
		w.put(widget("a", "bb", 1), widget("a", "c", 2))
		second, err := client.List(ctx, metav1.ListOptions{Limit: 2, Continue: first.GetContinue()})
		require.NoError(t, err)
		assert.Equal(t, []string{"a/b", "a/c"}, names(second))
		assert.Equal(t, map[string]any{"size": int64(1)}, second.Items[1].Object["spec"])
		assert.Equal(t, first.GetResourceVersion(), second.GetResourceVersion())
		last, err := client.List(ctx, metav1.ListOptions{Limit: 2, Continue: second.GetContinue()})
		require.NoError(t, err)
		assert.Equal(t, []string{"b/a"}, names(last))
		assert.Empty(t, last.GetContinue())

		exact, err := client.List(ctx, metav1.ListOptions{ResourceVersion: first.GetResourceVersion(), ResourceVersionMatch: metav1.ResourceVersionMatchExact})
		require.NoError(t, err)
		assert.Equal(t, []string{"a/a", "a/a-b", "a/b", "a/c", "b/a"}, names(exact))
		latest, err := client.List(ctx, metav1.ListOptions{ResourceVersion: first.GetResourceVersion()})
		require.NoError(t, err)
		assert.Equal(t, []string{"a/a", "a/a-b", "a/bb", "a/c", "b/a"}, names(latest))

		w.Compact()
		for _, options := range []metav1.ListOptions{
			{Continue: first.GetContinue()}, {ResourceVersion: first.GetResourceVersion(), ResourceVersionMatch: metav1.ResourceVersionMatchExact},
		} {
			_, err = client.List(ctx, options)
			assert.True(t, apierrors.IsResourceExpired(err), err)
		}
	})
}

func TestSelectors(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		w.put(widget("a", "one", 1), widget("a", "two", 2), widget("b", "one", 1))
		for _, c := range []struct {
			namespace, labels, fields string
			want                      []string
		}{
			{"", "", "", []string{"a/one", "a/two", "b/one"}},
			{"a", "", "", []string{"a/one", "a/two"}},
			{"", "size=1", "", []string{"a/one", "b/one"}},
			{"", "size in (2,3)", "", []string{"a/two"}},
			{"", "", "metadata.name=one,metadata.namespace!=a", []string{"b/one"}},
			{"gone", "", "", []string{}},
		} {
			list, err := w.dynamic().Resource(widgets).Namespace(c.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: c.labels, FieldSelector: c.fields})
			require.NoError(t, err)
			assert.Equal(t, c.want, names(list))
		}
		list, err := w.dynamic().Resource(widgets).List(t.Context(), metav1.ListOptions{LabelSelector: "size=1", Limit: 1})
		require.NoError(t, err)
		assert.Nil(t, list.GetRemainingItemCount(), "the handler has not counted")
		assert.NotEmpty(t, list.GetContinue())
	})
}

// TestHistoryIsLimited writes until the beginning is forgotten.
func TestHistoryIsLimited(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		begin, err := w.dynamic().Resource(widgets).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for i := range 10_001 {
			w.put(widget("default", "a", int64(i)))
		}
		_, err = w.dynamic().Resource(widgets).Watch(t.Context(), metav1.ListOptions{ResourceVersion: begin.GetResourceVersion()})
		assert.True(t, apierrors.IsResourceExpired(err), err)
		recent, err := w.dynamic().Resource(widgets).List(t.Context(), metav1.ListOptions{ResourceVersion: "9000", ResourceVersionMatch: metav1.ResourceVersionMatchExact})
		require.NoError(t, err)
		assert.Equal(t, "9000", recent.Items[0].GetResourceVersion())
	})
}

const tableType = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

func TestTables(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		w.put(widget("default", "a", 1), widget("default", "b", 2))
		for path, c := range map[string]struct {
			rows int
			kind string
		}{
			"/apis/example.com/v1/widgets":                                             {2, "PartialObjectMetadata"},
			"/apis/example.com/v1/namespaces/default/widgets/b":                        {1, "PartialObjectMetadata"},
			"/apis/example.com/v1/widgets?includeObject=Object&labelSelector=size%3D2": {1, "Widget"},
			"/apis/example.com/v1/widgets?includeObject=None":                          {2, ""},
		} {
			code, body := w.answer("GET", path, "", "Accept", tableType)
			require.Equal(t, 200, code, body)
			var table metav1.Table
			require.NoError(t, json.Unmarshal([]byte(body), &table))
			var columns []string
			for _, c := range table.ColumnDefinitions {
				columns = append(columns, c.Name+" "+c.Type)
			}
			assert.Equal(t, []string{"Name string", "Size integer", "Age string"}, columns)
			require.Len(t, table.Rows, c.rows)
			last := table.Rows[c.rows-1]
			assert.Equal(t, []any{"b", float64(2)}, last.Cells[:2])
			var object struct {
				Kind     string
				Metadata metav1.ObjectMeta
			}
			if c.kind != "" {
				require.NoError(t, json.Unmarshal(last.Object.Raw, &object))
				assert.Equal(t, "b", object.Metadata.Name)
			}
			assert.Equal(t, c.kind, object.Kind)
		}
		code, body := w.answer("GET", "/apis/other.example.com/v1/gadgets", "", "Accept", tableType)
		assert.Equal(t, 200, code)
		assert.Contains(t, body, `"rows":[]`)
	})
}

func TestMetadata(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		w.put(widget("default", "a", 1))
		client, err := metadata.NewForConfigAndClient(w.config, w.client)
		require.NoError(t, err)
		one, err := client.Resource(widgets).Namespace("default").Get(t.Context(), "a", metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, "1", one.Labels["size"])
		list, err := client.Resource(widgets).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		assert.Equal(t, "a", list.Items[0].Name)
		_, body := w.answer("GET", "/apis/example.com/v1/widgets", "", "Accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io")
		assert.Contains(t, body, `"kind":"PartialObjectMetadataList"`)
		assert.NotContains(t, body, "spec")
	})
}
