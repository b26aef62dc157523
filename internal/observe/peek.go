package observe

import (
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"

	"snowglobe.test/envtest/trace"
	"snowglobe.test/internal/watchframe"
)

func mediaOf(contentType string) string {
	media, _, _ := mime.ParseMediaType(contentType)
	return media
}

// sent looks into the body of a request, if there is a copy that can be read in its place.
func sent(req *http.Request) (object trace.Object, dryRun bool) {
	dryRun = slices.Contains(req.URL.Query()["dryRun"], metav1.DryRunAll)
	if req.GetBody == nil || req.Body == nil {
		return object, dryRun
	}
	reader, err := req.GetBody()
	if err != nil {
		return object, dryRun
	}
	defer func() { _ = reader.Close() }()
	body, err := io.ReadAll(io.LimitReader(reader, maxKeptBytes))
	if err != nil {
		return object, dryRun
	}
	content, whole := Decode(mediaOf(req.Header.Get("Content-Type")), body)
	if req.Method != http.MethodDelete {
		return objectOf(content, whole), dryRun
	}
	options := &unstructured.Unstructured{Object: map[string]any{"metadata": content["preconditions"]}}
	all, _ := content["dryRun"].([]any)
	return trace.Object{UID: string(options.GetUID()), Revision: revisionOf(options.GetResourceVersion())}, dryRun || slices.Contains(all, any(metav1.DryRunAll))
}

// look adds what the body of an answer says, which may be no object of an API.
func look(answer *trace.Answer, media string, body []byte) {
	content, whole := Decode(media, body)
	if content == nil {
		return
	}
	object := &unstructured.Unstructured{Object: content}
	if object.GetKind() == "Status" {
		answer.Reason, _, _ = unstructured.NestedString(content, "reason")
		answer.About = aboutOf(content)
		return
	}
	items, isList := itemsOf(content)
	if !isList || object.GetResourceVersion() == "" { // discovery has lists of what is stored nowhere
		answer.Objects = []trace.Object{objectOf(content, whole)}
		return
	}
	answer.Revision, answer.Continue = revisionOf(object.GetResourceVersion()), object.GetContinue()
	for _, item := range items {
		o := objectOf(item, whole)
		if o.Kind == "" { // the items of a list do not tell it
			o.Kind = strings.TrimSuffix(object.GetKind(), "List")
		}
		answer.Objects = append(answer.Objects, o)
	}
}

// itemsOf returns the objects of a list, or of a table, which lists even a single one. A
// table may have been asked for without objects: then it is no list.
func itemsOf(content map[string]any) (items []map[string]any, ok bool) {
	all, ok := content["items"].([]any)
	if content["kind"] == "Table" {
		all, ok = content["rows"].([]any)
	}
	for _, item := range all {
		object, _ := item.(map[string]any)
		if content["kind"] == "Table" {
			object, _ = object["object"].(map[string]any)
		}
		if object == nil {
			return nil, false
		}
		items = append(items, object)
	}
	return items, ok
}

// aboutOf returns what a Status is about.
func aboutOf(status map[string]any) (about trace.Object) {
	about.Kind, _, _ = unstructured.NestedString(status, "details", "kind")
	about.Name, _, _ = unstructured.NestedString(status, "details", "name")
	about.UID, _, _ = unstructured.NestedString(status, "details", "uid")
	return about
}

// withFrame adds to an event of a watch what a frame says, whose object is of that media type.
func withFrame(event trace.WatchEvent, media string, frame watchframe.Frame) trace.WatchEvent {
	framed, err := frame.Event()
	if err != nil {
		event.Type = "unreadable"
		return event
	}
	event.Type = framed.Type
	content, whole := Decode(media, framed.Object.Raw)
	switch {
	case content == nil:
	case event.Type == string(watch.Error):
		event.Reason, _, _ = unstructured.NestedString(content, "reason")
	default:
		if items, ok := itemsOf(content); ok && len(items) == 1 { // a table with one row
			content = items[0]
		}
		event.Object = objectOf(content, whole)
		end, _, _ := unstructured.NestedString(content, "metadata", "annotations", metav1.InitialEventsAnnotationKey)
		event.InitialEventsEnd = event.Type == string(watch.Bookmark) && end == "true"
	}
	return event
}

// objectOf returns what is kept of an object, with a digest if all of it is there.
func objectOf(content map[string]any, whole bool) trace.Object {
	if content == nil {
		return trace.Object{}
	}
	o := unstructured.Unstructured{Object: content}
	object := trace.Object{
		Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(), UID: string(o.GetUID()), Revision: revisionOf(o.GetResourceVersion()),
		Labels: labels.Set(o.GetLabels()).String(), Finalizers: strings.Join(o.GetFinalizers(), ","),
	}
	deleted, found, _ := unstructured.NestedFieldNoCopy(content, "metadata", "deletionTimestamp")
	object.Deleting = found && deleted != nil
	if whole {
		object.Digest = digest(content)
	}
	return object
}

func revisionOf(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
