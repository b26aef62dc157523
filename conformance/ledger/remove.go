package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
)

// Remove removes what the page has made, the last first. What is not gone by then is looked for
// by Close.
func (p *Page) Remove(ctx context.Context) error {
	var errs []error
	for _, object := range slices.Backward(p.Made()) {
		gone, err := object.gone || p.of.goesWithItsNamespace(object, p), error(nil)
		switch {
		case !gone && object.GroupResource == namespaces && p.of.lasting != nil:
			err = p.of.removeNamespace(ctx, object)
		case !gone:
			gone, err = p.of.remove(ctx, object)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("remove %s: %w", object, err))
		}
		if !gone {
			p.of.leave(object)
		}
	}
	return errors.Join(errs...)
}

func (l *Ledger) leave(object Object) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaving = append(l.leaving, object)
}

// goesWithItsNamespace reports whether an object is removed with its namespace.
func (l *Ledger) goesWithItsNamespace(object Object, page *Page) bool {
	if l.lasting == nil {
		return false
	}
	known := slices.ContainsFunc(l.lasting.namespaced,
		func(r schema.GroupVersionResource) bool { return r.GroupResource() == object.GroupResource })
	return known && page.Has(object.Namespace)
}

// deletion does not wait for garbage collectors and nodes, of which there may be none.
var deletion = metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground),
	GracePeriodSeconds: new(int64(0))}

// remove deletes an object, and the finalizers that would keep it, and reports whether it is gone.
// The finalizers of a CustomResourceDefinition are the server's own.
func (l *Ledger) remove(ctx context.Context, object Object) (gone bool, err error) {
	options, err := json.Marshal(deletion)
	if err != nil {
		return false, err
	}
	answer, err := l.client.Delete().AbsPath(object.path).Body(options).DoRaw(ctx)
	if err != nil {
		return apierrors.IsNotFound(err), ignoreNotFound(err)
	}
	var kept metav1.PartialObjectMetadata
	if json.Unmarshal(answer, &kept) != nil || kept.Kind == "Status" {
		return true, nil
	}
	if len(kept.Finalizers) == 0 || object.Group == apiextensionsv1.GroupName {
		return false, nil
	}
	_, err = l.client.Patch(types.MergePatchType).AbsPath(object.path).Body([]byte(`{"metadata":{"finalizers":null}}`)).
		DoRaw(ctx)
	return err == nil || apierrors.IsNotFound(err), ignoreNotFound(err)
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// removeNamespace deletes a namespace, and does what a namespace controller does, if there is one
// or not: nothing can be made in it any more, so what is there once is there for the last time.
func (l *Ledger) removeNamespace(ctx context.Context, namespace Object) error {
	if gone, err := l.remove(ctx, namespace); gone || err != nil {
		return err
	}
	const passes = 2
	for range passes {
		found, err := l.empty(ctx, namespace.Name)
		if err != nil {
			return err
		}
		if found == 0 {
			return l.finalize(ctx, namespace)
		}
	}
	return nil // its objects take their time, and Close waits for them
}

// lanes is how many resources of a namespace are looked at together.
const lanes = 8

// empty deletes what there is in a namespace, and returns how much that was.
func (l *Ledger) empty(ctx context.Context, namespace string) (found int, err error) {
	counts, errs := make([]int, len(l.lasting.namespaced)), make([]error, len(l.lasting.namespaced))
	workqueue.ParallelizeUntil(ctx, lanes, len(l.lasting.namespaced), func(i int) {
		counts[i], errs[i] = l.emptyOf(ctx, namespace, l.lasting.namespaced[i])
	})
	for _, count := range counts {
		found += count
	}
	return found, errors.Join(append(errs, ctx.Err())...)
}

func (l *Ledger) emptyOf(ctx context.Context, namespace string, resource schema.GroupVersionResource,
) (found int, err error) {
	list, err := l.lasting.metadata.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		return 0, nil // a resource that is not served any more
	}
	if err != nil {
		return 0, err
	}
	for _, item := range list.Items {
		object := Object{GroupResource: resource.GroupResource(), Namespace: namespace, Name: item.Name,
			path: pathOf(resource, namespace, item.Name)}
		if _, err := l.remove(ctx, object); err != nil {
			return 0, err
		}
	}
	return len(list.Items), nil
}

func pathOf(resource schema.GroupVersionResource, namespace, name string) string {
	prefix := "/apis/" + resource.Group
	if resource.Group == "" {
		prefix = "/api"
	}
	return fmt.Sprintf("%s/%s/namespaces/%s/%s/%s", prefix, resource.Version, namespace, resource.Resource, name)
}

// finalize ends a namespace in which there is nothing.
func (l *Ledger) finalize(ctx context.Context, namespace Object) error {
	text, err := l.client.Get().AbsPath(namespace.path).DoRaw(ctx)
	if err == nil {
		var object corev1.Namespace
		if err = json.Unmarshal(text, &object); err != nil {
			return err
		}
		object.Spec.Finalizers = nil
		if text, err = json.Marshal(object); err != nil {
			return err
		}
		_, err = l.client.Put().AbsPath(namespace.path, "finalize").Body(text).DoRaw(ctx)
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // a namespace controller was faster
	}
	return err
}

// How long Close waits for what the cluster still deletes, its pause, and after how many of these it
// nudges.
const (
	leavingTimeout  = time.Minute
	leavingInterval = 100 * time.Millisecond
	nudgeInterval   = 10
)

// Close waits until the cluster has deleted what was removed, and names what it has not.
func (l *Ledger) Close(ctx context.Context) error {
	var left []string
	looks := 0
	err := wait.PollUntilContextTimeout(ctx, leavingInterval, leavingTimeout, true,
		func(ctx context.Context) (bool, error) {
			var err error
			if left, err = l.look(ctx); err != nil || len(left) == 0 {
				return len(left) == 0, err
			}
			if looks++; looks%nudgeInterval == 0 {
				l.nudge(ctx, looks)
			}
			return false, nil
		})
	if err == nil {
		return nil
	}
	return fmt.Errorf("left at %s: %s: %w", l.host, strings.Join(left, ", "), err)
}

// nudge changes the CustomResourceDefinitions that are still there. Upstream's finalizer forgets one
// until its resync, which comes every five minutes, if it can't delete the instances at once and
// then meets a conflict, which it takes for a change that it will hear of: the change was its own, in
// the condition Terminating, and it does not listen to these.
func (l *Ledger) nudge(ctx context.Context, number int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, object := range l.leaving {
		if object.Group == apiextensionsv1.GroupName {
			patch := fmt.Sprintf(`{"metadata":{"annotations":{"conformance.snowglobe.test/leaving":"%d"}}}`, number)
			request := l.client.Patch(types.MergePatchType).AbsPath(object.path).Body([]byte(patch))
			_, _ = request.DoRaw(ctx) // it may be gone by now; look tells
		}
	}
}

// look returns which of the objects that are leaving are still there. The error says that the
// server does not answer.
func (l *Ledger) look(ctx context.Context) (left []string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaving = slices.DeleteFunc(l.leaving, func(object Object) bool {
		got := l.client.Get().AbsPath(object.path).Do(ctx).Error()
		if apierrors.IsNotFound(got) {
			return true
		}
		left = append(left, object.String())
		if apierrors.ReasonForError(got) == metav1.StatusReasonUnknown {
			err = got
		}
		return false
	})
	return left, err
}
