package restore

import (
	"context"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	apistorage "k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/tools/cache"

	"snowglobe.test/internal/broadcast"
)

// CRDObserver sees the CRDs as the handler of custom resources does, by the same
// informer. A nil one is of a server whose CRD API is off, and waits for nothing.
type CRDObserver struct {
	informer cache.SharedIndexInformer
	handler  CRDHandler
	onChange func()

	changed broadcast.News // at every event
}

// CRDHandler serves custom resources. It is told of what the informer has seen later than the
// observer looks.
type CRDHandler interface {
	// Follow has it serve a CRD as the informer has seen it.
	Follow(crd *apiextensionsv1.CustomResourceDefinition)
	// Forget has it serve no CRD that the informer has seen go.
	Forget()
}

// ObserveCRDs returns an observer that calls onChange at every event of a CRD.
func ObserveCRDs(informer cache.SharedIndexInformer, handler CRDHandler, onChange func()) (*CRDObserver, error) {
	o := &CRDObserver{informer: informer, handler: handler, onChange: onChange}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { o.notify() },
		UpdateFunc: func(before, after any) {
			if revisionOf(before) != revisionOf(after) {
				o.notify() // else it is a resync
			}
		},
		DeleteFunc: func(any) { o.notify() },
	})
	return o, err
}

func (o *CRDObserver) notify() {
	o.onChange()
	o.changed.Tell()
}

// Wait waits until custom resources are served by a CRD of a revision or later.
func (o *CRDObserver) Wait(ctx context.Context, name string, revision int64) error {
	return o.wait(ctx, name, revision, false)
}

// wait waits until custom resources are served by a CRD of a revision or later or, if it was
// deleted, by none.
func (o *CRDObserver) wait(ctx context.Context, name string, revision int64, deleted bool) error {
	if o == nil {
		return nil
	}
	var seen any
	err := o.changed.Await(ctx, func() (reached bool) {
		var exists bool
		seen, exists, _ = o.informer.GetStore().GetByKey(name) // a store in memory does not fail
		return exists && revisionOf(seen) >= revision || !exists && deleted
	})
	if err != nil {
		return fmt.Errorf("the CRD informer has not seen a change of %s: %w", name, err)
	}
	if crd, ok := seen.(*apiextensionsv1.CustomResourceDefinition); ok {
		o.handler.Follow(crd)
	} else {
		o.handler.Forget()
	}
	return nil
}

// behind says in what the handler is behind the CRDs in the store, by name and
// revision, or which of them the server will yet delete. It is empty if nothing is.
func (o *CRDObserver) behind(revisions map[string]int64) string {
	seen := o.crds()
	if len(seen) != len(revisions) {
		return fmt.Sprintf("the CRD informer has seen %d CRDs, the store has %d", len(seen), len(revisions))
	}
	for _, crd := range seen {
		switch {
		case terminating(crd):
			return fmt.Sprintf("CRD %s is not yet deleted", crd.Name)
		case revisionOf(crd) != revisions[crd.Name]:
			return fmt.Sprintf("the CRD informer has not seen a change of %s", crd.Name)
		}
	}
	return ""
}

// terminating reports whether the server will yet delete a CRD by itself.
func terminating(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return crd.DeletionTimestamp != nil && slices.Equal(crd.Finalizers, []string{apiextensionsv1.CustomResourceCleanupFinalizer})
}

// served returns the served versions of all CRDs, by the names of their APIServices.
func (o *CRDObserver) served() sets.Set[string] {
	names := sets.New[string]()
	for _, crd := range o.crds() {
		for _, version := range crd.Spec.Versions {
			if version.Served {
				names.Insert(version.Name + "." + crd.Spec.Group)
			}
		}
	}
	return names
}

func (o *CRDObserver) crds() []*apiextensionsv1.CustomResourceDefinition {
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, object := range o.informer.GetStore().List() {
		crds = append(crds, object.(*apiextensionsv1.CustomResourceDefinition))
	}
	return crds
}

// revisionOf returns 0 if there is none.
func revisionOf(crd any) int64 {
	revision, _ := apistorage.APIObjectVersioner{}.ObjectResourceVersion(crd.(runtime.Object))
	return int64(revision)
}
