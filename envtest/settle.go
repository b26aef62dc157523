package envtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/trace"
	"snowglobe.test/envtest/virtualtime"
)

// settleTimeout bounds Settle in the clock of the control plane. It exceeds the
// default timeout of a request, whose client waits for an answer that was lost.
const settleTimeout = 2 * time.Minute

// idlePatience is how long, in wall time, goroutines may keep a bubble from becoming idle.
// It is less than virtualtime.Patience, so that the caller of Settle gets the error before
// the whole bubble is given up.
const idlePatience = 1500 * time.Millisecond

// Settle looks again after a pause, which doubles up to settleMaxPause. The pauses are in the
// clock of the control plane.
const (
	settleFirstPause = 10 * time.Millisecond
	settleMaxPause   = time.Second
)

// Settled is a control plane in which nothing more happens by itself.
type Settled struct {
	// Revision is the store's revision.
	Revision int64
	// Held are the operations that wait for a gate, a freeze or a step of an order.
	// Whatever else has not happened yet waits for one of them.
	Held []fault.Operation
}

// Settle returns when nothing more will happen by itself: every watch cache of
// every server has reached the revision of the store, the servers' informers have
// seen what the caches have, and only long-running requests are in flight. Operations
// held by a rule do not count; Settled lists them.
//
// In virtual time this is exact: watches have delivered, queues are empty, and
// whatever still waits is waiting for time or for a held operation. Time passes only if
// something is late that needs time: a delay, a retry, an answer that was dropped.
// If a mutex, a system call or a channel from outside keeps the bubble from becoming
// idle for 1.5 seconds of wall time, the error is a *virtualtime.StuckError, which
// names the goroutine and its line. In real time, watches may still be delivering what
// the caches have.
//
// If two minutes pass, ctx ends or the control plane is stopped first, the error says what
// is late, held or being written.
func (cp *ControlPlane) Settle(ctx context.Context) (Settled, error) {
	limited, cancel := context.WithTimeoutCause(ctx, settleTimeout, fmt.Errorf("not within %s", settleTimeout))
	defer cancel()
	limited, forget := cp.untilStop(limited)
	defer forget()
	var before int64
	var known []string // what was late at the previous look
	for pause := settleFirstPause; ; pause = min(2*pause, settleMaxPause) {
		state, late, err := cp.look(limited)
		// Without virtual time it takes two looks to see that nothing moves.
		if err == nil && len(late) == 0 && (virtualtime.Virtual() || state.Revision == before) {
			return state, nil
		}
		if err != nil {
			return state, unsettled(late, known, state.Held, gaveUp(limited, err))
		}
		if known = late; len(late) == 0 {
			known = []string{cp.moved(before, state.Revision)}
		}
		before = state.Revision
		select {
		case <-time.After(pause):
		case <-limited.Done():
			return state, unsettled(known, nil, state.Held, fmt.Errorf("it was given up: %w", context.Cause(limited)))
		}
	}
}

// gaveUp adds to the error of a look why the context ended, if it has.
func gaveUp(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

// moved says that the store changed between two looks, and who wrote last. before is zero if
// there was no earlier look.
func (cp *ControlPlane) moved(before, now int64) string {
	if before == 0 {
		return fmt.Sprintf("the store was at revision %d, and there was no second look to see whether it stays there", now)
	}
	text := fmt.Sprintf("the store went on from revision %d to %d", before, now)
	for _, rec := range slices.Backward(cp.recorder.Records()) {
		if e, ok := rec.Event.(trace.Request); ok && e.Phase == trace.End && slices.Contains(writes, e.Verb) {
			return fmt.Sprintf("%s, last by %s %s of %s", text, e.Verb, e.URI, e.User)
		}
	}
	return text
}

// writes are the verbs that change the store.
var writes = []string{"create", "update", "patch", "delete", "deletecollection"}

// unsettled says why a control plane has not settled: it lists what is late or, if this look
// found nothing, what was late at the previous one.
func unsettled(late, before []string, held []fault.Operation, err error) error {
	var text strings.Builder
	text.WriteString("the control plane has not settled")
	if len(late) == 0 && len(before) > 0 {
		text.WriteString("; a moment before")
		late = before
	}
	for i, l := range late {
		if i == maxLate {
			fmt.Fprintf(&text, "; and %d more", len(late)-i)
			break
		}
		text.WriteString("; " + l)
	}
	for i, op := range held {
		if i == maxLate {
			fmt.Fprintf(&text, "; and %d more are held", len(held)-i)
			break
		}
		text.WriteString("; held: " + op.String())
	}
	return fmt.Errorf("%s; %w", &text, err)
}

// maxLate is how much of what is late or held an error names.
const maxLate = 5

// look returns the state, and what is late, a line each.
func (cp *ControlPlane) look(ctx context.Context) (Settled, []string, error) {
	state, late, err := cp.lookOnce(ctx)
	if err != nil || len(late) == 0 {
		return state, late, err
	}
	// The watch cache of a resource that nobody writes gets no events, so it learns the
	// store's revision only from a progress notification, which has to be requested.
	for _, c := range cp.chains() {
		if err := c.Storage().RequestProgress(ctx); err != nil {
			return state, late, err
		}
	}
	return cp.lookOnce(ctx)
}

// lookOnce looks at caches as they are; in virtual time, once the bubble is idle.
func (cp *ControlPlane) lookOnce(ctx context.Context) (state Settled, late []string, err error) {
	if len(cp.chains()) == 0 {
		return state, nil, cp.noneRuns()
	}
	if virtualtime.Virtual() {
		if err := cp.awaitWork(ctx); err != nil {
			return state, nil, fmt.Errorf("virtual time has not come to rest: %w", err)
		}
	}
	held := cp.faults.Held()
	for _, h := range held {
		state.Held = append(state.Held, h.Operation)
	}
	chains := cp.chains()
	if len(chains) == 0 {
		return state, nil, cp.noneRuns()
	}
	for _, c := range chains {
		u, err := c.SettleServer().Unsettled(ctx, held)
		state.Revision = max(state.Revision, u.Revision)
		late = append(late, u.Late...)
		if err != nil {
			return state, late, err
		}
	}
	return state, late, nil
}

// noneRuns says that no server runs, and why if one has crashed.
func (cp *ControlPlane) noneRuns() error {
	return errors.Join(errors.New("no API server runs"), cp.Err())
}

// awaitWork waits until the bubble is idle and no operation is still sleeping for its latency
// (virtualtime.Latency).
func (cp *ControlPlane) awaitWork(ctx context.Context) error {
	for {
		if err := cp.awaitIdle(ctx, true); err != nil || cp.latency.Working() == 0 {
			return err
		}
		select {
		case <-time.After(virtualtime.MaxLatency):
		case <-ctx.Done():
			return fmt.Errorf("%d operations take their time: %w", cp.latency.Working(), context.Cause(ctx))
		}
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
