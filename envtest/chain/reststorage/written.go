package reststorage

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/utils/ptr"
)

// AfterWrite is told of each write to a resource that has a watch cache, before who has written
// gets the answer. The revision is that of the write, or of the object where nothing had to change. The
// write is the first of two if the same request is going to delete the object, as far as the object
// shows: upstream first says in it that it is being deleted.
type AfterWrite func(ctx context.Context, resource *Resource, revision uint64, firstOfTwo bool)

// written is a storage that calls after.
type written struct {
	*cacher.CacheDelegator
	after func(ctx context.Context, out runtime.Object, firstOfTwo bool)
}

// Create implements storage.Interface, as do Delete and GuaranteedUpdate.
func (w written) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	err := w.CacheDelegator.Create(ctx, key, obj, out, ttl)
	if err == nil {
		w.after(ctx, out, false)
	}
	return err
}

func (w written) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, cached runtime.Object, opts storage.DeleteOptions,
) error {
	err := w.CacheDelegator.Delete(ctx, key, out, preconditions, validate, cached, opts)
	if err == nil {
		w.after(ctx, out, false)
	}
	return err
}

func (w written) GuaranteedUpdate(ctx context.Context, key string, out runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, update storage.UpdateFunc, cached runtime.Object,
) error {
	err := w.CacheDelegator.GuaranteedUpdate(ctx, key, out, ignoreNotFound, preconditions, update, cached)
	if err == nil {
		w.after(ctx, out, nothingKeeps(out))
	}
	return err
}

// nothingKeeps reports whether an object is being deleted that neither a finalizer nor a grace period
// keeps any longer. Upstream's Store.Delete then deletes it, but for a namespace, which has finalizers
// of its own in its spec.
func nothingKeeps(object runtime.Object) bool {
	o, err := meta.Accessor(object)
	return err == nil && o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 &&
		ptr.Deref(o.GetDeletionGracePeriodSeconds(), 0) == 0
}

// tellWrites makes a resource's storage tell of writes, if anybody wants to know.
func (s *Storage) tellWrites(resource *Resource) storage.Interface {
	if s.cfg.AfterWrite == nil {
		return resource.store
	}
	return written{resource.store, func(ctx context.Context, out runtime.Object, firstOfTwo bool) {
		revision, err := resource.store.Versioner().ObjectResourceVersion(out)
		if err == nil && revision > 0 {
			s.cfg.AfterWrite(ctx, resource, revision, firstOfTwo)
		}
	}}
}

// WaitSeen waits until the watch cache has seen a revision of its resource, is filled anew, or is
// destroyed. Unlike WaitFresh it asks nothing of upstream, which would start a goroutine that lasts
// three seconds.
func (r *Resource) WaitSeen(ctx context.Context, revision uint64) error {
	return r.source.taken.Await(ctx, func() bool {
		if !r.cache.Ready() || r.Destroyed() {
			return true
		}
		seen, err := r.cache.LastSyncResourceVersion()
		return err != nil || seen >= revision
	})
}
