package aggregated

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	"snowglobe.test/fakes/stub"
)

// form is how objects are sent: as they are, as their metadata alone, or as rows.
type form struct {
	resource      *Resource
	as            string // "", "Table" or "PartialObjectMetadata"
	includeObject metav1.IncludeObjectPolicy
}

// newForm takes the first form that the client accepts.
func newForm(resource *Resource, request Request) (form, error) {
	f := form{resource: resource, includeObject: metav1.IncludeObjectPolicy(request.Query.Get("includeObject"))}
	accepted := request.Header.Get("Accept")
	if accepted == "" {
		return f, nil
	}
	for one := range strings.SplitSeq(accepted, ",") {
		media, parameters, err := mime.ParseMediaType(one)
		if err != nil || !slices.Contains([]string{"application/json", "application/*", "*/*"}, media) {
			continue
		}
		f.as = strings.TrimSuffix(parameters["as"], "List")
		meta := parameters["g"] == metav1.GroupName && parameters["v"] == "v1"
		if f.as == "" || meta && (f.as == "Table" || f.as == "PartialObjectMetadata") {
			return f, nil
		}
	}
	return f, apierrors.NewGenericServerResponse(http.StatusNotAcceptable, request.Verb, resource.groupResource(), request.ObjectName,
		fmt.Sprintf("only application/json is served, as it is or as Table or PartialObjectMetadata of meta.k8s.io/v1; the client accepts %q", accepted), 0, true)
}

// object returns an object in the form.
func (f form) object(object *unstructured.Unstructured) any {
	switch f.as {
	case "Table":
		return f.table(metav1.ListMeta{ResourceVersion: object.GetResourceVersion()}, []*unstructured.Unstructured{object})
	case "PartialObjectMetadata":
		return metadata(object)
	default:
		return f.versioned(object)
	}
}

// versioned is the object in the version of the request.
func (f form) versioned(object *unstructured.Unstructured) map[string]any {
	fields := maps.Clone(object.Object)
	fields["apiVersion"] = f.resource.groupVersion().String()
	return fields
}

func metadata(object *unstructured.Unstructured) map[string]any {
	return map[string]any{
		"kind": "PartialObjectMetadata", "apiVersion": metav1.SchemeGroupVersion.String(), "metadata": object.Object["metadata"],
	}
}

// list returns objects in the form of a list.
func (f form) list(meta metav1.ListMeta, objects []*unstructured.Unstructured) any {
	if f.as == "Table" {
		return f.table(meta, objects)
	}
	type list struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        metav1.ListMeta `json:"metadata"`
		Items           []any           `json:"items"`
	}
	l := list{metav1.TypeMeta{Kind: f.resource.Kind + "List", APIVersion: f.resource.groupVersion().String()}, meta, []any{}}
	if f.as == "PartialObjectMetadata" {
		l.TypeMeta = metav1.TypeMeta{Kind: "PartialObjectMetadataList", APIVersion: metav1.SchemeGroupVersion.String()}
	}
	for _, o := range objects {
		l.Items = append(l.Items, f.object(o))
	}
	return l
}

// table returns objects as the rows that kubectl get shows.
func (f form) table(meta metav1.ListMeta, objects []*unstructured.Unstructured) *metav1.Table {
	table := &metav1.Table{
		TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: metav1.SchemeGroupVersion.String()},
		ListMeta: meta, Rows: []metav1.TableRow{},
	}
	table.ColumnDefinitions = append(table.ColumnDefinitions, metav1.TableColumnDefinition{Name: "Name", Type: "string", Format: "name", Description: "Name of the object"})
	for _, c := range f.resource.Columns {
		definition := c.TableColumnDefinition
		definition.Type = cmp.Or(definition.Type, "string")
		table.ColumnDefinitions = append(table.ColumnDefinitions, definition)
	}
	table.ColumnDefinitions = append(table.ColumnDefinitions, metav1.TableColumnDefinition{Name: "Age", Type: "string", Description: "Age of the object"})
	for _, o := range objects {
		row := metav1.TableRow{Cells: []any{o.GetName()}}
		for _, c := range f.resource.Columns {
			row.Cells = append(row.Cells, c.Cell(o.DeepCopy()))
		}
		row.Cells = append(row.Cells, duration.HumanDuration(time.Since(o.GetCreationTimestamp().Time)))
		switch f.includeObject {
		case metav1.IncludeNone:
		case metav1.IncludeObject:
			row.Object = runtime.RawExtension{Object: &unstructured.Unstructured{Object: f.versioned(o)}}
		default:
			row.Object = runtime.RawExtension{Object: &unstructured.Unstructured{Object: metadata(o)}}
		}
		table.Rows = append(table.Rows, row)
	}
	return table
}

func writeJSON(w http.ResponseWriter, code int, object any) error {
	data, err := json.Marshal(object)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(data) // the client may be gone
	return nil
}

// statusOf is an error as the object that clients know.
func statusOf(err error) metav1.Status {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		known = apierrors.NewInternalError(err)
	}
	status := known.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return status
}

// writeFailure answers with an error. A stub.Status or ErrBreak of a rule is used as it
// stands; any other error becomes a Status object.
func writeFailure(w http.ResponseWriter, err error) {
	var ruled stub.Status
	if errors.As(err, &ruled) || errors.Is(err, stub.ErrBreak) {
		stub.WriteError(w, err)
		return
	}
	status := statusOf(err)
	if seconds := status.Details; seconds != nil && seconds.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(seconds.RetryAfterSeconds))
	}
	_ = writeJSON(w, int(status.Code), status) // a status can be encoded
}
