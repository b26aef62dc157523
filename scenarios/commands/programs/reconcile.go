package programs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"snowglobe.test/scenarios/commands/clients"
	"snowglobe.test/scenarios/subset"
)

// reconcileRule is a rule of a controller.
type reconcileRule struct {
	Name     string         `json:"name,omitempty"`
	When     map[string]any `json:"when,omitempty"`
	Unless   map[string]any `json:"unless,omitempty"`
	Deleting bool           `json:"deleting,omitempty"`
	// One of these says what is done.
	Patch    json.RawMessage `json:"patch,omitempty"`
	Status   json.RawMessage `json:"status,omitempty"`
	Apply    json.RawMessage `json:"apply,omitempty"`
	Finalize string          `json:"finalize,omitempty"`
	Delete   bool            `json:"delete,omitempty"`
}

// Validate implements what script.ReadList asks for.
func (r reconcileRule) Validate() error {
	actions := 0
	for _, said := range []bool{r.Patch != nil, r.Status != nil, r.Apply != nil, r.Finalize != "", r.Delete} {
		if said {
			actions++
		}
	}
	switch {
	case actions != 1:
		return errors.New("it needs exactly one of patch, status, apply, finalize and delete")
	case r.Finalize != "" && !r.Deleting:
		return errors.New("finalize is for objects that are being deleted: it needs deleting: true")
	}
	return nil
}

// concerns reports whether the rule decides about an object.
func (r reconcileRule) concerns(object *unstructured.Unstructured) bool {
	return r.Deleting == (object.GetDeletionTimestamp() != nil) &&
		len(subset.Differences(object.Object, r.When)) == 0 &&
		(r.Unless == nil || len(subset.Differences(object.Object, r.Unless)) > 0)
}

// controller reconciles the objects of one resource.
type controller struct {
	name     string
	rules    []reconcileRule
	resource clients.Resource
	known    []clients.Resource // all that the server served when it began
	client   dynamic.Interface
	cache    cache.Store
	queue    workqueue.TypedRateLimitingInterface[string]
	tell     func(clients.Event)
	note     func(string)
}

// handler queues the keys of objects.
func (c *controller) handler() cache.ResourceEventHandler {
	queue := func(object any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
			c.queue.Add(key)
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: queue, UpdateFunc: func(_, object any) { queue(object) }, DeleteFunc: queue}
}

// run reconciles until the queue is shut down.
func (c *controller) run(ctx context.Context, synced func() bool) {
	if !cache.WaitForCacheSync(ctx.Done(), synced) {
		return
	}
	for {
		key, ended := c.queue.Get()
		if ended {
			return
		}
		c.reconcileKey(ctx, key)
		c.queue.Done(key)
	}
}

// reconcileKey reconciles an object, and queues it again if that fails.
func (c *controller) reconcileKey(ctx context.Context, key string) {
	cached, exists, _ := c.cache.GetByKey(key) // a store in memory does not fail
	if !exists {
		c.queue.Forget(key)
		return
	}
	object := cached.(*unstructured.Unstructured).DeepCopy()
	i := slices.IndexFunc(c.rules, func(r reconcileRule) bool { return r.concerns(object) })
	if i < 0 {
		c.queue.Forget(key)
		return
	}
	err := c.act(ctx, c.rules[i], object)
	switch {
	case ctx.Err() != nil:
	case apierrors.IsNotFound(err): // it is gone, and the cache will hear of it
		c.queue.Forget(key)
	case err != nil:
		c.note(fmt.Sprintf("controller %s: %s: %v", c.name, key, err))
		c.tell(clients.Event{Kind: clients.Failed, Object: object})
		c.queue.AddRateLimited(key)
	default:
		c.queue.Forget(key)
		c.tell(clients.Event{Kind: clients.Reconciled, Object: object})
	}
}

// act does what a rule says about an object.
func (c *controller) act(ctx context.Context, rule reconcileRule, object *unstructured.Unstructured) error {
	client := clients.In(c.client, c.resource, object.GetNamespace())
	switch {
	case rule.Delete:
		uid := object.GetUID()
		return client.Delete(ctx, object.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	case rule.Finalize != "":
		return c.finalize(ctx, client, rule.Finalize, object)
	case rule.Apply != nil:
		return c.applyOwned(ctx, expandFields(rule.Apply, object), object)
	case rule.Status != nil:
		patch := fmt.Appendf(nil, `{"status":%s}`, expandFields(rule.Status, object))
		_, err := client.Patch(ctx, object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: c.name}, "status")
		return err
	}
	_, err := client.Patch(ctx, object.GetName(), types.MergePatchType, expandFields(rule.Patch, object), metav1.PatchOptions{FieldManager: c.name})
	return err
}

// finalize takes a finalizer away, unless the object has changed since it was cached.
func (c *controller) finalize(ctx context.Context, client dynamic.ResourceInterface, name string, object *unstructured.Unstructured) error {
	rest := slices.DeleteFunc(object.GetFinalizers(), func(f string) bool { return f == name })
	if len(rest) == len(object.GetFinalizers()) {
		return nil
	}
	changed := object.DeepCopy()
	changed.SetFinalizers(rest)
	_, err := client.Update(ctx, changed, metav1.UpdateOptions{FieldManager: c.name})
	return err
}

// applyOwned applies an object that the given one owns.
func (c *controller) applyOwned(ctx context.Context, manifest []byte, owner *unstructured.Unstructured) error {
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(manifest, &object.Object); err != nil {
		return err
	}
	i := slices.IndexFunc(c.known, func(r clients.Resource) bool { return r.Kind == object.GroupVersionKind() })
	if i < 0 {
		return fmt.Errorf("the server serves no kind %s of %s", object.GetKind(), object.GetAPIVersion())
	}
	r := c.known[i]
	if r.Namespaced && object.GetNamespace() == "" {
		object.SetNamespace(owner.GetNamespace())
	}
	object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, c.resource.Kind)})
	_, err := clients.In(c.client, r, object.GetNamespace()).Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: c.name, Force: true})
	return err
}

// expandFields replaces ${PATH} in texts of JSON by the fields of an object.
func expandFields(text []byte, object *unstructured.Unstructured) []byte {
	return []byte(os.Expand(string(text), func(path string) string {
		value, found, err := unstructured.NestedFieldNoCopy(object.Object, strings.Split(path, ".")...)
		if err != nil || !found {
			return ""
		}
		quoted, _ := json.Marshal(fmt.Sprint(value)) // a string always can be
		return string(bytes.Trim(quoted, `"`))
	}))
}
