package client

import (
	"context"

	"snowglobe.test/envtest/client/internal/session"
)

// Snapshot is everything that the store of a control plane held at one moment.
type Snapshot struct{ id session.ID }

// Snapshot keeps the state of the store; see envtest.ControlPlane.Snapshot.
func (cp *ControlPlane) Snapshot(ctx context.Context) (*Snapshot, error) {
	s := &Snapshot{}
	return s, cp.call(ctx, session.Snapshot, session.None{}, &s.id)
}

// Restore brings back the state of a snapshot of this control plane.
func (cp *ControlPlane) Restore(ctx context.Context, to *Snapshot) error {
	return cp.call(ctx, session.Restore, to.id, &session.None{})
}

// Reset restores the state right after boot; see envtest.ControlPlane.Reset.
func (cp *ControlPlane) Reset(ctx context.Context) error {
	return cp.call(ctx, session.Reset, session.None{}, &session.None{})
}

// Compact makes the store discard all revisions before its current one.
func (cp *ControlPlane) Compact(ctx context.Context) error {
	return cp.call(ctx, session.Compact, session.None{}, &session.None{})
}

// Settled is a control plane in which nothing more happens by itself.
type Settled struct {
	// Revision is the store's revision.
	Revision int64
	// Held are the operations that wait because of a rule.
	Held []string
}

// Settle returns when the server has nothing more to do by itself: its watch caches and its
// informers have seen all that the store has. Watches may still be delivering it.
func (cp *ControlPlane) Settle(ctx context.Context) (Settled, error) {
	var settled session.Settled
	if err := cp.await(ctx, session.Settle, session.None{}, &settled); err != nil {
		return Settled{}, err
	}
	return Settled(settled), nil
}

// TraceForm is how a trace is written.
type TraceForm = session.Form

// The forms of a trace.
const (
	// TraceText is a timeline for people, a line for each record.
	TraceText = session.Text
	// TraceJSON has a record of package snowglobe.test/envtest/trace on each line.
	TraceJSON = session.JSON
)

// Trace returns what has happened since this test got the control plane: requests, hooks, checks
// and faults. The beginning of a long one may be gone.
func (cp *ControlPlane) Trace(ctx context.Context, form TraceForm) (string, error) {
	var text string
	err := cp.call(ctx, session.Trace, form, &text)
	return text, err
}
