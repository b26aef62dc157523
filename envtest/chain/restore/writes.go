package restore

import (
	"context"
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// serverWrites knows the objects that API servers created while they booted and
// no other client has written since. A restore leaves the servers' later updates of
// these alone, such as the status of a flow schema. An object that a restore has
// brought back is no longer one of them, for it may be as others had changed it.
type serverWrites struct {
	mu     sync.Mutex
	booted bool
	last   map[string]int64 // key -> revision of a server's last write
}

// Booted says that an object is there as a server has created it in an earlier boot.
func (r *Restorer) Booted(key string, revision int64) { r.writes.put(key, 0, revision) }

// BootFinished says that objects which servers create from now on are not part of the
// state right after boot: others caused them, or the servers would create them again.
func (r *Restorer) BootFinished() {
	r.writes.mu.Lock()
	defer r.writes.mu.Unlock()
	r.writes.booted = true
}

// Written implements intercept.Writes.
func (r *Restorer) Written(ctx context.Context, key string, expected, revision int64) {
	if isServer(ctx) {
		r.writes.put(key, expected, revision)
	}
}

// Deleted implements intercept.Writes.
func (r *Restorer) Deleted(key string, expected int64) { r.writes.delete(key, expected) }

func isServer(ctx context.Context) bool {
	who, ok := request.UserFrom(ctx)
	return ok && who.GetName() == user.APIServerUser
}

// put notes that a server has written what was at a revision, 0 if it is new.
func (w *serverWrites) put(key string, expected, revision int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if expected == w.last[key] && (expected != 0 || !w.booted) {
		w.last[key] = revision
	}
}

// delete notes that a client has deleted what was at a revision.
func (w *serverWrites) delete(key string, expected int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if expected == w.last[key] {
		delete(w.last, key)
	}
}

// wroteLast reports whether only servers have written what a key has.
func (w *serverWrites) wroteLast(have *mvccpb.KeyValue) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last[string(have.Key)] == have.ModRevision
}
