package aggregated

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
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
	if left := int64(len(objects)) - options.Limit; options.Limit > 0 && left > 0 {
		objects = objects[:options.Limit]
		last := objects[options.Limit-1]
		place := path.Join("/", last.GetNamespace(), last.GetName())
		if meta.Continue, err = storage.EncodeContinue(place, "/", revision); err != nil {
			return err
		}
		if options.all() {
			meta.RemainingItemCount = &left
		}
	}
	return writeJSON(w, http.StatusOK, form.list(meta, objects))
}

// listOptions are those of lists and watches.
type listOptions struct {
	internalversion.ListOptions
	revision int64 // 0 if any will do
	after    key   // with the namespace and name after which a page begins
}

func (o *listOptions) all() bool { return o.LabelSelector.Empty() && o.FieldSelector.Empty() }

// selects reports whether the selectors match an object. Nil is no object.
func (o *listOptions) selects(object *unstructured.Unstructured) bool {
	return object != nil && o.LabelSelector.Matches(labels.Set(object.GetLabels())) && o.FieldSelector.Matches(
		fields.Set{"metadata.name": object.GetName(), "metadata.namespace": object.GetNamespace()})
}

// listOptions reads the query of a list or a watch, as upstream does. The name of a single
// object in the path counts as a field that is selected.
func (s *Server) listOptions(request Request) (o listOptions, err error) {
	o.LabelSelector, o.FieldSelector = labels.Everything(), fields.Everything() // of an empty query
	err = scheme.ParameterCodec.DecodeParameters(request.Query, metav1.SchemeGroupVersion, &o.ListOptions)
	if err == nil {
		o.FieldSelector, err = o.FieldSelector.Transform(runtime.DefaultMetaV1FieldSelectorConversion)
	}
	if err != nil {
		return o, apierrors.NewBadRequest(err.Error())
	}
	if errs := validation.ValidateListOptions(&o.ListOptions, true); len(errs) > 0 {
		return o, apierrors.NewInvalid(metav1.Kind("ListOptions"), "", errs)
	}
	if request.ObjectName != "" {
		named := fields.OneTermEqualSelector("metadata.name", request.ObjectName)
		o.FieldSelector = fields.AndSelectors(o.FieldSelector, named)
	}
	if o.Continue != "" {
		place, revision, err := storage.DecodeContinue(o.Continue, "")
		if err != nil {
			return o, apierrors.NewBadRequest(err.Error())
		}
		o.revision = revision
		o.after.namespace, o.after.name = path.Split(place)
		o.after.namespace = strings.TrimSuffix(o.after.namespace, "/")
		return o, nil
	}
	revision, err := strconv.ParseUint(cmp.Or(o.ResourceVersion, "0"), 10, 63)
	if err != nil {
		return o, apierrors.NewBadRequest(fmt.Sprintf("resourceVersion: %v", err))
	}
	o.revision = int64(revision)
	if now := s.store.now(); o.revision > now && request.Verb == "list" {
		return o, tooLarge(o.revision, now)
	}
	if request.Verb == "list" && o.ResourceVersionMatch != metav1.ResourceVersionMatchExact {
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
