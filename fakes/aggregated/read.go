package aggregated

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// get serves one object.
func (s *Server) get(_ context.Context, w http.ResponseWriter, form form, request Request) error {
	object := s.store.get(form.resource.key(request))
	if object == nil {
		return apierrors.NewNotFound(form.resource.groupResource(), request.ObjectName)
	}
	return writeJSON(w, http.StatusOK, form.object(object))
}

func (r *Resource) key(request Request) key {
	return key{r.groupResource(), request.Namespace, request.ObjectName}
}

// list serves a list, or a page of it.
func (s *Server) list(_ context.Context, w http.ResponseWriter, form form, request Request) error {
	options, err := s.listOptions(request)
	if err != nil {
		return err
	}
	objects, revision, err := s.store.list(form.resource.groupResource(), request.Namespace, options.revision)
	if err != nil {
		return err
	}
	objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
		return !options.selects(o) || key{namespace: o.GetNamespace(), name: o.GetName()}.compare(options.after) <= 0
	})
	meta := metav1.ListMeta{ResourceVersion: strconv.FormatInt(revision, 10)}
	if left := int64(len(objects)) - options.limit; options.limit > 0 && left > 0 {
		objects = objects[:options.limit]
		last := objects[options.limit-1]
		meta.Continue = page{revision, last.GetNamespace(), last.GetName()}.token()
		if options.all() {
			meta.RemainingItemCount = &left
		}
	}
	return writeJSON(w, http.StatusOK, form.list(meta, objects))
}

// listOptions are those of lists and watches.
type listOptions struct {
	revision int64 // 0 if any will do
	limit    int64
	after    key // with the namespace and name after which a page begins
	labels   labels.Selector
	fields   fields.Selector
}

func (o *listOptions) all() bool { return o.labels.Empty() && o.fields.Empty() }

// selects reports whether the selectors match an object. Nil is no object.
func (o *listOptions) selects(object *unstructured.Unstructured) bool {
	return object != nil && o.labels.Matches(labels.Set(object.GetLabels())) &&
		o.fields.Matches(fields.Set{"metadata.name": object.GetName(), "metadata.namespace": object.GetNamespace()})
}

// listOptions reads the query of a list or a watch.
func (s *Server) listOptions(request Request) (listOptions, error) {
	q := request.Query
	var o listOptions
	var err error
	if o.labels, err = labels.Parse(q.Get("labelSelector")); err != nil {
		return o, apierrors.NewBadRequest(fmt.Sprintf("labelSelector: %v", err))
	}
	if o.fields, err = fieldSelector(request); err != nil {
		return o, apierrors.NewBadRequest(fmt.Sprintf("fieldSelector: %v", err))
	}
	if o.limit, err = number(q, "limit"); err != nil {
		return o, err
	}
	if o.revision, err = number(q, "resourceVersion"); err != nil {
		return o, err
	}
	match := metav1.ResourceVersionMatch(q.Get("resourceVersionMatch"))
	switch {
	case match != "" && match != metav1.ResourceVersionMatchExact && match != metav1.ResourceVersionMatchNotOlderThan:
		return o, apierrors.NewBadRequest(fmt.Sprintf("resourceVersionMatch %q is not supported", match))
	case match == metav1.ResourceVersionMatchExact && o.revision == 0:
		return o, apierrors.NewBadRequest("resourceVersionMatch Exact needs a resourceVersion that is not 0")
	}
	if token := q.Get("continue"); token != "" {
		p, err := newPage(token)
		if err != nil {
			return o, apierrors.NewBadRequest(fmt.Sprintf("continue key is not valid: %v", err))
		}
		o.revision, o.after = p.Revision, key{namespace: p.Namespace, name: p.Name}
		return o, nil
	}
	if now := s.store.now(); o.revision > now && request.Verb == "list" {
		return o, tooLarge(o.revision, now)
	}
	if request.Verb == "list" && match != metav1.ResourceVersionMatchExact {
		o.revision = 0 // the latest is not older
	}
	return o, nil
}

// tooLarge is what upstream answers to those who want what has not been yet.
func tooLarge(wanted, now int64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", wanted, now), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return err
}

// fieldSelector knows the fields that all objects have. The name of a single object in
// the path counts as one.
func fieldSelector(request Request) (fields.Selector, error) {
	selector, err := fields.ParseSelector(request.Query.Get("fieldSelector"))
	if err != nil {
		return nil, err
	}
	for _, r := range selector.Requirements() {
		if r.Field != "metadata.name" && r.Field != "metadata.namespace" {
			return nil, fmt.Errorf("field label not supported: %s", r.Field)
		}
	}
	if request.ObjectName != "" {
		selector = fields.AndSelectors(selector, fields.OneTermEqualSelector("metadata.name", request.ObjectName))
	}
	return selector, nil
}

// number reads a number of a query, 0 if there is none.
func number(query url.Values, name string) (int64, error) {
	text := query.Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("%s: invalid value %q: it must be a number, 0 at least", name, text))
	}
	return n, nil
}

// page is where a page of a list has ended, and of which revision.
type page struct {
	Revision  int64  `json:"revision"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

func (p page) token() string {
	data, err := json.Marshal(p)
	if err != nil {
		panic(err) // it has no field that could fail
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

func newPage(token string) (page, error) {
	data, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return page{}, err
	}
	var p page
	err = json.Unmarshal(data, &p)
	return p, err
}
