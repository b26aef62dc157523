package envtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/envtest/chain/restore"
	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/trace"
	"snowglobe.test/envtest/virtualtime"
)

// Snapshot is everything that the store of a control plane held at one moment.
type Snapshot struct {
	origin *ControlPlane
	store  storage.Snapshot
}

var (
	errStoreKeepsNone = fmt.Errorf("%w: a store of this kind keeps none; use memory, embedded or cluster", storage.ErrNoSnapshots)
	// errNoBootState is the error of Reset if a rule held something at the start: Launch then
	// returned before the boot was over, so there was no moment to take the snapshot.
	errNoBootState = fmt.Errorf("%w: something was held at the start, so there is none of right after boot; take a Snapshot when the server is ready, and Restore it", storage.ErrNoSnapshots)
)

// Snapshot keeps the current state of the running control plane. On the in-memory store
// that takes no time, whatever the size; other stores copy every key.
func (cp *ControlPlane) Snapshot(ctx context.Context) (*Snapshot, error) {
	s, err := cp.snapshot(ctx)
	if err != nil {
		return nil, fmt.Errorf("snapshot of control plane: %w", err)
	}
	return s, nil
}

func (cp *ControlPlane) snapshot(ctx context.Context) (*Snapshot, error) {
	if _, ok := cp.store.(storage.Snapshotter); !ok {
		return nil, fmt.Errorf("store %s: %w", cp.store, errStoreKeepsNone)
	}
	if err := cp.allRun(); err != nil {
		return nil, err
	}
	ctx, forget := cp.untilStop(ctx)
	defer forget()
	kept, err := cp.restorer.Snapshot(ctx, cp.restoreServers())
	if err != nil {
		return nil, err
	}
	return &Snapshot{origin: cp, store: kept}, nil
}

// keepBootState takes the snapshot that Reset goes back to, if there can be one.
func (cp *ControlPlane) keepBootState(ctx context.Context) error {
	if _, ok := cp.store.(storage.Snapshotter); !ok || cp.cfg.holds() {
		return nil
	}
	cp.restorer.BootFinished()
	var err error
	cp.boot, err = cp.snapshot(ctx)
	return err
}

// Reset brings the running servers back to their state right after boot, with the CRDs
// of WithCRDs and WithCRDPaths; see Restore.
func (cp *ControlPlane) Reset(ctx context.Context) error {
	err := errNoBootState
	switch {
	case cp.boot != nil:
		err = cp.restore(ctx, cp.boot, "reset")
	case !cp.cfg.holds():
		err = fmt.Errorf("store %s: %w", cp.store, errStoreKeepsNone)
	}
	if err != nil {
		return fmt.Errorf("reset control plane: %w", err)
	}
	return nil
}

// Restore brings the running servers back to an earlier state, without a restart: the
// objects in the store are deleted and put at new resource versions, so that every
// watch, and every informer behind one, sees what became of them. When it returns,
// lists from all servers show the state of the snapshot, both from the store and from
// watch caches; CRDs that are back are served, and those that are gone answer 404.
// The servers' own informers, for authorization and admission, have caught up too where
// no rule holds them up; clients' informers do as they always do. All servers must be running.
//
// One second after a CRD is deleted, an API server ends the watches of its objects, here as
// upstream. So Restore deletes a CRD only when the watchers of its objects have received the
// deletions of these objects. It does not wait for a watcher that has read nothing for seconds.
//
// A few objects are left alone: the leases by which servers signal that they are
// alive, and what a server writes by itself in the background, perhaps a moment after
// it is ready, if it is younger than the snapshot (the Service default/kubernetes,
// the system namespaces, two ConfigMaps in kube-system). A store that several control
// planes share is restored for all of them. Users of Config stay.
func (cp *ControlPlane) Restore(ctx context.Context, to *Snapshot) error {
	if err := cp.restore(ctx, to, "restore"); err != nil {
		return fmt.Errorf("restore control plane: %w", err)
	}
	return nil
}

func (cp *ControlPlane) restore(ctx context.Context, to *Snapshot, why string) error {
	switch {
	case to.origin != cp:
		return fmt.Errorf("the snapshot is of %s, not of %s; fork it instead", to.origin.name, cp.name)
	case cp.Err() != nil:
		return fmt.Errorf("the API server has crashed: %w", cp.Err())
	}
	if err := cp.allRun(); err != nil {
		return err
	}
	ctx, forget := cp.untilStop(ctx)
	defer forget()
	if err := cp.waitControllersIdle(ctx); err != nil {
		return err
	}
	changes, err := cp.restorer.Restore(ctx, cp.restoreServers(), to.store)
	cp.recorder.Record(trace.Note{Text: fmt.Sprintf("%s to revision %d of the store: %d writes", why, to.store.Revision(), len(changes))})
	if err != nil {
		return err
	}
	return cp.waitCRDsServed(ctx, changes)
}

// restoreServers are the running servers, as a restore knows them.
func (cp *ControlPlane) restoreServers() []*restore.Server {
	var servers []*restore.Server
	for _, c := range cp.chains() {
		servers = append(servers, c.RestoreServer())
	}
	return servers
}

// waitControllersIdle waits until controllers have handled the objects that the restore
// will delete. Otherwise one could undo the restore: upstream's repair of IPAddresses
// recreates the deleted address of a Service that its informer still has. Only virtual time
// shows when controllers are idle; a bubble that cannot become idle is not waited for.
func (cp *ControlPlane) waitControllersIdle(ctx context.Context) error {
	if !virtualtime.Virtual() {
		return nil
	}
	err := cp.awaitIdle(ctx, false)
	if _, stuck := errors.AsType[*virtualtime.StuckError](err); stuck {
		return nil
	}
	return err
}

// waitCRDsServed waits until the CRDs that were put back are served.
func (cp *ControlPlane) waitCRDsServed(ctx context.Context, changes []storage.Change) error {
	put := map[string]bool{}
	for _, change := range changes {
		if _, name, ok := strings.Cut(change.Key, "/apiextensions.k8s.io/customresourcedefinitions/"); ok {
			put[name] = !change.Deleted
		}
	}
	if len(put) == 0 {
		return nil
	}
	for _, server := range cp.servers {
		if err := server.waitCRDsServed(ctx, put); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) waitCRDsServed(ctx context.Context, put map[string]bool) error {
	client, err := definitions(s.Config())
	if err != nil {
		return err
	}
	list, err := client.ApiextensionsV1().CustomResourceDefinitions().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var back []*apiextensionsv1.CustomResourceDefinition
	for i := range list.Items {
		if crd := &list.Items[i]; put[crd.Name] && established(crd) {
			back = append(back, crd)
		}
	}
	if len(back) == 0 {
		return nil
	}
	if err := waitServed(ctx, client, back); err != nil {
		return fmt.Errorf("back, but not served: %w", err)
	}
	return nil
}

// Fork starts another control plane from a snapshot of this one, on its own store; both
// keep running side by side, and the caller stops each. It starts as a restarted server
// would, with the flags and timeouts of this one, and then opts. It has its own
// credentials, but accepts this one's service account tokens. The context bounds only
// the start. Only the in-memory store can be forked.
func (cp *ControlPlane) Fork(ctx context.Context, from *Snapshot, opts ...Option) (*ControlPlane, error) {
	fork, err := cp.fork(from, opts)
	if err != nil {
		return nil, fmt.Errorf("fork control plane: %w", err)
	}
	return fork.launch(ctx)
}

func (cp *ControlPlane) fork(from *Snapshot, opts []Option) (*ControlPlane, error) {
	store, ok := cp.store.(storage.Forker)
	if !ok {
		return nil, fmt.Errorf("store %s cannot be forked; use the in-memory store", cp.store)
	}
	if from.origin != cp {
		return nil, fmt.Errorf("the snapshot is of %s, not of %s", from.origin.name, cp.name)
	}
	cfg, err := newConfig(append([]Option{inherit(cp.cfg)}, opts...))
	if err != nil {
		return nil, err
	}
	switch {
	case cfg.store != nil:
		return nil, errors.New("a fork is on a fork of the store; WithStore does not go with it")
	case cfg.clock != nil:
		return nil, errors.New("a fork lives at the time of the other; WithClock does not go with it")
	}
	fork := newControlPlane(cfg)
	fork.accountKey = cp.accountKey
	cfg.store, err = store.Fork(fork.name, from.store)
	return fork, err
}

// inherit is what a fork takes over from its parent.
func inherit(parent *config) Option {
	return func(c *config) {
		c.flags, c.timeouts = slices.Clone(parent.flags), parent.timeouts
		c.promptHooks, c.withoutHousekeeping = parent.promptHooks, parent.withoutHousekeeping
		c.settledWrites = parent.settledWrites
	}
}
