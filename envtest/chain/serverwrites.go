package chain

import (
	"context"
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// Writes knows the objects of the boot that nobody but API servers themselves has
// written since they made them: a restore leaves the servers' later updates of
// those alone, such as the status of a flow schema. What a restore has brought
// back is no longer one of them, for it may be as others had changed it. Make it
// with NewWrites, one for all servers of a store.
type Writes struct {
	mu     sync.Mutex
	booted bool
	last   map[string]int64 // key -> revision of a server's last write
}

// NewWrites returns a Writes that has seen nothing yet.
func NewWrites() *Writes { return &Writes{last: map[string]int64{}} }

// Written implements intercept.Writes.
func (w *Writes) Written(ctx context.Context, key string, expected, revision int64) {
	if !isServer(ctx) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if expected == w.last[key] && (expected != 0 || !w.booted) { // 0 is a new object
		w.last[key] = revision
	}
}

// Deleted implements intercept.Writes.
func (w *Writes) Deleted(key string, expected int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if expected == w.last[key] {
		delete(w.last, key)
	}
}

func isServer(ctx context.Context) bool {
	who, ok := request.UserFrom(ctx)
	return ok && who.GetName() == user.APIServerUser
}

// boot says that what is made from now on is not of the boot.
func (w *Writes) boot() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.booted = true
}

// wrote says whether servers were the only ones to write what a key has.
func (w *Writes) wrote(have *mvccpb.KeyValue) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last[string(have.Key)] == have.ModRevision
}
