package aggregated

import (
	"context"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// create serves the creation of an object.
func (s *Server) create(_ context.Context, w http.ResponseWriter, form form, request Request) error {
	resource := form.resource
	dry, err := dryRun(request)
	if err != nil {
		return err
	}
	if media := contentType(request); media != "" && media != "application/json" {
		return unsupported(resource, request, media)
	}
	object, err := resource.decode(request, request.Body)
	if err != nil {
		return err
	}
	if object.GetName() == "" && object.GetGenerateName() != "" {
		object.SetName(object.GetGenerateName() + rand.String(5))
	}
	if err := resource.checkName(object); err != nil {
		return err
	}
	if object.GetResourceVersion() != "" {
		return apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	if resource.Status {
		delete(object.Object, "status")
	}
	key := resource.key(request)
	key.name = object.GetName()
	object, err = s.store.change(key, dry, func(current *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		if current != nil {
			return nil, apierrors.NewAlreadyExists(resource.groupResource(), object.GetName())
		}
		return created(object), nil
	})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusCreated, form.object(object))
}

// dryRun reports whether nothing is to be written.
func dryRun(request Request) (bool, error) {
	for _, value := range request.Query["dryRun"] {
		if value != metav1.DryRunAll {
			return false, apierrors.NewBadRequest(fmt.Sprintf("dryRun %q: the only value is %s", value, metav1.DryRunAll))
		}
	}
	return request.Query.Has("dryRun"), nil
}

func contentType(request Request) string {
	media, _, err := mime.ParseMediaType(request.Header.Get("Content-Type"))
	if err != nil {
		return request.Header.Get("Content-Type")
	}
	return media
}

func unsupported(resource *Resource, request Request, media string) error {
	return apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, request.Verb, resource.groupResource(), request.ObjectName,
		fmt.Sprintf("the body is %q, which this server does not read", media), 0, true)
}

// decode reads an object. Its kind and namespace must be those of the path, and its name too
// if the path has one.
func (r *Resource) decode(request Request, body []byte) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(body, &object.Object); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body is no object in JSON: %v", err))
	}
	if got, want := object.GroupVersionKind(), r.groupVersion().WithKind(r.Kind); got != want {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the object provided is a %s, and the path is for a %s", got, want))
	}
	if _, ok := object.Object["metadata"].(map[string]any); !ok && object.Object["metadata"] != nil {
		return nil, apierrors.NewBadRequest("metadata is no object")
	}
	if object.GetNamespace() == "" && r.Namespaced {
		object.SetNamespace(request.Namespace)
	}
	if object.GetNamespace() != request.Namespace {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the namespace of the provided object (%s) does not match the namespace sent on the request (%s)", object.GetNamespace(), request.Namespace))
	}
	if request.ObjectName != "" && object.GetName() == "" {
		object.SetName(request.ObjectName)
	}
	if request.ObjectName != "" && object.GetName() != request.ObjectName {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", object.GetName(), request.ObjectName))
	}
	return object, nil
}

func (r *Resource) checkName(object *unstructured.Unstructured) error {
	place, name := field.NewPath("metadata", "name"), object.GetName()
	if name == "" {
		return apierrors.NewInvalid(r.groupKind(), name, field.ErrorList{field.Required(place, "name or generateName is required")})
	}
	var errs field.ErrorList
	for _, problem := range content.IsPathSegmentName(name) {
		errs = append(errs, field.Invalid(place, name, problem))
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(r.groupKind(), name, errs)
	}
	return nil
}

// created sets the metadata of a new object that clients can't set, such as its UID.
func created(object *unstructured.Unstructured) *unstructured.Unstructured {
	object.SetUID(uuid.NewUUID())
	object.SetCreationTimestamp(metav1.NewTime(time.Now()))
	object.SetGeneration(1)
	object.SetDeletionTimestamp(nil)
	object.SetDeletionGracePeriodSeconds(nil)
	return object
}

// updated returns next with the metadata that clients can't change taken from current. It
// returns current if nothing differs, or nil if the last finalizer of a deleted object is gone.
func updated(current, next *unstructured.Unstructured) *unstructured.Unstructured {
	next.SetUID(current.GetUID())
	next.SetCreationTimestamp(current.GetCreationTimestamp())
	next.SetDeletionTimestamp(current.GetDeletionTimestamp())
	next.SetDeletionGracePeriodSeconds(current.GetDeletionGracePeriodSeconds())
	next.SetGeneration(current.GetGeneration())
	next.SetResourceVersion(current.GetResourceVersion())
	if next.GetDeletionTimestamp() != nil && len(next.GetFinalizers()) == 0 {
		return nil
	}
	if reflect.DeepEqual(current.Object, next.Object) {
		return current
	}
	if !reflect.DeepEqual(wanted(current), wanted(next)) {
		next.SetGeneration(current.GetGeneration() + 1)
	}
	return next
}

// wanted is what the generation counts: all but the metadata and the status.
func wanted(object *unstructured.Unstructured) map[string]any {
	fields := maps.Clone(object.Object)
	for _, name := range []string{"apiVersion", "metadata", "status"} {
		delete(fields, name)
	}
	return fields
}

// update serves updates and patches of objects and of their status.
func (s *Server) update(_ context.Context, w http.ResponseWriter, form form, request Request) error {
	resource := form.resource
	dry, err := dryRun(request)
	if err != nil {
		return err
	}
	apply, err := resource.patch(request)
	if err != nil {
		return err
	}
	object, err := s.store.change(resource.key(request), dry, func(current *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		if current == nil {
			return nil, apierrors.NewNotFound(resource.groupResource(), request.ObjectName)
		}
		body, err := apply(form.versioned(current))
		if err != nil {
			return nil, err
		}
		next, err := resource.decode(request, body)
		if err != nil {
			return nil, err
		}
		if err := conflict(resource, current, next.GetResourceVersion(), next.GetUID()); err != nil {
			return nil, err
		}
		if resource.Status {
			next = separate(current, next, request.Subresource == "status")
		}
		return updated(current, next), nil
	})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, form.object(object))
}

// patch returns a function that makes the JSON of the next state from the current fields.
func (r *Resource) patch(request Request) (func(map[string]any) ([]byte, error), error) {
	media := contentType(request)
	if request.Verb == "update" {
		if media != "" && media != "application/json" {
			return nil, unsupported(r, request, media)
		}
		return func(map[string]any) ([]byte, error) { return request.Body, nil }, nil
	}
	var apply func(document []byte) ([]byte, error)
	switch types.PatchType(media) {
	case types.JSONPatchType:
		patch, err := jsonpatch.DecodePatch(request.Body)
		if err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("the JSON patch: %v", err))
		}
		apply = patch.Apply
	case types.MergePatchType:
		apply = func(document []byte) ([]byte, error) { return jsonpatch.MergePatch(document, request.Body) }
	default:
		return nil, unsupported(r, request, media)
	}
	return func(fields map[string]any) ([]byte, error) {
		document, err := json.Marshal(fields)
		if err != nil {
			return nil, err
		}
		patched, err := apply(document)
		if err != nil {
			return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, request.Verb, r.groupResource(), request.ObjectName, err.Error(), 0, true)
		}
		return patched, nil
	}, nil
}

// conflict returns an error if the object has another resourceVersion or UID than the client
// requires. Empty ones require nothing.
func conflict(resource *Resource, current *unstructured.Unstructured, resourceVersion string, uid types.UID) error {
	switch {
	case uid != "" && uid != current.GetUID():
		return apierrors.NewConflict(resource.groupResource(), current.GetName(), fmt.Errorf("the UID is %s, not %s", current.GetUID(), uid))
	case resourceVersion != "" && resourceVersion != current.GetResourceVersion():
		return apierrors.NewConflict(resource.groupResource(), current.GetName(), fmt.Errorf("the object has been modified; please apply your changes to the latest version and try again"))
	}
	return nil
}

// separate lets a write of the status change nothing else, and any other write all but
// the status.
func separate(current, next *unstructured.Unstructured, status bool) *unstructured.Unstructured {
	from := current
	if status {
		from, next = next, current.DeepCopy()
	}
	if value, ok := from.DeepCopy().Object["status"]; ok {
		next.Object["status"] = value
	} else {
		delete(next.Object, "status")
	}
	return next
}

// delete serves the deletion of an object. One with finalizers stays until they are
// gone.
func (s *Server) delete(_ context.Context, w http.ResponseWriter, form form, request Request) error {
	resource := form.resource
	dry, err := dryRun(request)
	if err != nil {
		return err
	}
	object, gone, err := s.remove(resource, resource.key(request), request, dry)
	if err != nil {
		return err
	}
	if !gone {
		return writeJSON(w, http.StatusOK, form.object(object))
	}
	return writeJSON(w, http.StatusOK, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Name: object.GetName(), Group: resource.Group, Kind: resource.Plural, UID: object.GetUID()},
	})
}

// remove deletes an object, and reports whether it is gone.
func (s *Server) remove(resource *Resource, key key, request Request, dry bool) (object *unstructured.Unstructured, gone bool, err error) {
	var options metav1.DeleteOptions
	if len(request.Body) > 0 {
		if err := json.Unmarshal(request.Body, &options); err != nil {
			return nil, false, apierrors.NewBadRequest(fmt.Sprintf("the delete options: %v", err))
		}
	}
	object, err = s.store.change(key, dry || slices.Contains(options.DryRun, metav1.DryRunAll), func(current *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		if current == nil {
			return nil, apierrors.NewNotFound(resource.groupResource(), key.name)
		}
		if p := options.Preconditions; p != nil {
			if err := conflict(resource, current, ptr.Deref(p.ResourceVersion, ""), ptr.Deref(p.UID, "")); err != nil {
				return nil, err
			}
		}
		switch {
		case len(current.GetFinalizers()) == 0:
			gone = true
			return nil, nil
		case current.GetDeletionTimestamp() != nil:
			return current, nil
		}
		next, now, grace := current.DeepCopy(), metav1.NewTime(time.Now()), int64(0)
		next.SetDeletionTimestamp(&now)
		next.SetDeletionGracePeriodSeconds(&grace)
		next.SetGeneration(current.GetGeneration() + 1)
		return next, nil
	})
	return object, gone, err
}

// deleteCollection serves the deletion of all objects that are selected, and answers
// with what they were.
func (s *Server) deleteCollection(_ context.Context, w http.ResponseWriter, form form, request Request) error {
	resource := form.resource
	dry, err := dryRun(request)
	if err != nil {
		return err
	}
	options, err := s.listOptions(request)
	if err != nil {
		return err
	}
	objects, _, err := s.store.list(resource.groupResource(), request.Namespace, 0)
	if err != nil {
		return err
	}
	objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return !options.selects(o) })
	for _, o := range objects {
		_, _, err := s.remove(resource, key{resource.groupResource(), o.GetNamespace(), o.GetName()}, request, dry)
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return writeJSON(w, http.StatusOK, form.list(metav1.ListMeta{ResourceVersion: strconv.FormatInt(s.store.now(), 10)}, objects))
}
