package chain

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/tools/cache"
)

// crdObserver sees the definitions as the handler of custom resources does,
// through the same informer.
type crdObserver struct {
	informer cache.SharedIndexInformer
	onChange func()

	mu    sync.Mutex
	moved chan struct{} // closed at the next event
}

// observeCRDs calls onChange at every event of a definition.
func observeCRDs(informer cache.SharedIndexInformer, onChange func()) (*crdObserver, error) {
	o := &crdObserver{informer: informer, onChange: onChange, moved: make(chan struct{})}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { o.move() },
		UpdateFunc: func(before, after any) {
			if before.(*apiextensionsv1.CustomResourceDefinition).ResourceVersion != after.(*apiextensionsv1.CustomResourceDefinition).ResourceVersion {
				o.move() // else it is a resync
			}
		},
		DeleteFunc: func(any) { o.move() },
	})
	return o, err
}

func (o *crdObserver) move() {
	o.onChange()
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.moved)
	o.moved = make(chan struct{})
}

func (o *crdObserver) next() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.moved
}

// WaitCRD waits until the handler of custom resources has seen a revision of a
// definition, or a later one.
func (c *Chain) WaitCRD(ctx context.Context, name string, revision int64) error {
	if c.crds == nil {
		return nil
	}
	return c.crds.wait(ctx, name, revision, false)
}

// wait waits until the handler has seen a change of a definition.
func (o *crdObserver) wait(ctx context.Context, name string, revision int64, deleted bool) error {
	return o.until(ctx, "a change of "+name, func() (bool, error) {
		found, exists, err := o.informer.GetStore().GetByKey(name)
		return exists && revisionOf(found) >= revision || !exists && deleted, err
	})
}

// settle waits until the handler sees the definitions that are in the store, by
// name and revision, and none of them is one that the server will yet delete.
func (o *crdObserver) settle(ctx context.Context, stored func(context.Context) (map[string]int64, error)) error {
	return o.until(ctx, "the CRDs in the store, or one is not yet deleted", func() (bool, error) {
		revisions, err := stored(ctx)
		seen := o.informer.GetStore().List()
		settled := len(seen) == len(revisions)
		for _, object := range seen {
			crd := object.(*apiextensionsv1.CustomResourceDefinition)
			settled = settled && !dying(crd) && revisionOf(crd) == revisions[crd.Name]
		}
		return settled, err
	})
}

// dying says whether the server will delete a definition by itself when it has
// deleted what is stored by it.
func dying(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return crd.DeletionTimestamp != nil && slices.Equal(crd.Finalizers, []string{apiextensionsv1.CustomResourceCleanupFinalizer})
}

func revisionOf(crd any) int64 {
	revision, _ := strconv.ParseInt(crd.(*apiextensionsv1.CustomResourceDefinition).ResourceVersion, 10, 64)
	return revision
}

// until waits until a condition holds, which is asked again at every event.
func (o *crdObserver) until(ctx context.Context, what string, holds func() (bool, error)) error {
	for {
		moved := o.next()
		if yes, err := holds(); yes || err != nil {
			return err
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("the CRD informer has not seen %s: %w", what, context.Cause(ctx))
		}
	}
}

// serves says whether some definition has a served version.
func (o *crdObserver) serves(group, version string) bool {
	return o.groupVersions()[version+"."+group]
}

// groupVersions returns the served versions of all definitions, by the name that
// an APIService would have.
func (o *crdObserver) groupVersions() map[string]bool {
	names := map[string]bool{}
	for _, object := range o.informer.GetStore().List() {
		crd := object.(*apiextensionsv1.CustomResourceDefinition)
		for _, version := range crd.Spec.Versions {
			if version.Served {
				names[version.Name+"."+crd.Spec.Group] = true
			}
		}
	}
	return names
}
