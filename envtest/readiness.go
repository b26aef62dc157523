package envtest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"snowglobe.test/envtest/trace"
)

// readiness remembers the checks of /readyz as they were last seen.
type readiness struct {
	mu    sync.Mutex
	known map[string]bool
	red   []string
}

// waitStarted waits for readiness or, when hooks are held, for the server to
// accept requests.
func (cp *ControlPlane) waitStarted(ctx context.Context) error {
	if !cp.cfg.holds() {
		return cp.WaitReady(ctx)
	}
	select {
	case <-cp.accepting:
		return nil
	case <-cp.crashed:
		return cp.crashErr
	case <-ctx.Done():
		return fmt.Errorf("the server does not accept requests: %w", context.Cause(ctx))
	}
}

// The pauses between two looks at the checks while the server starts. A hook
// that ends brings the first pause back.
const (
	readyFirstPause = 10 * time.Millisecond
	readyMaxPause   = time.Second
)

// WaitReady waits until /readyz answers 200. When the context ends first, the
// error names the checks that are red and the hooks that are held.
func (cp *ControlPlane) WaitReady(ctx context.Context) error {
	moved := make(chan struct{}, 1)
	defer cp.recorder.Subscribe(func(r trace.Record) {
		if _, ok := r.Event.(trace.Hook); ok {
			select {
			case moved <- struct{}{}:
			default:
			}
		}
	})()
	for pause := readyFirstPause; ; pause = min(2*pause, readyMaxPause) {
		if cp.Ready(ctx) {
			return nil
		}
		select {
		case <-time.After(pause):
		case <-moved:
			pause = readyFirstPause / 2
		case <-cp.crashed:
			return cp.crashErr
		case <-cp.runEnded:
			return errStopped
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w; checks that are red: %s; hooks that are held: %s", context.Cause(ctx),
				orNone(cp.RedChecks()), orNone(cp.HeldHooks()))
		}
	}
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// Ready asks /readyz once, records the checks that turned, and says whether the
// answer was 200.
func (cp *ControlPlane) Ready(ctx context.Context) bool {
	cp.readiness.mu.Lock()
	defer cp.readiness.mu.Unlock()
	var ready bool
	var checks []trace.Check
	cp.member.Do(func() { ready, checks = cp.chain.Probe(ctx, "readyz") })
	if len(checks) == 0 && !ready {
		return false // answered by a filter: the server is not that far yet
	}
	r := &cp.readiness
	if r.known == nil {
		r.known = map[string]bool{}
	}
	r.red = nil
	for _, check := range checks {
		if !check.OK {
			r.red = append(r.red, check.Name)
		}
		if was, seen := r.known[check.Name]; !seen || was != check.OK {
			r.known[check.Name] = check.OK
			cp.recorder.Record(check)
		}
	}
	return ready
}

// RedChecks returns the readiness checks that were red when they were last
// asked, in upstream's order.
func (cp *ControlPlane) RedChecks() []string {
	cp.readiness.mu.Lock()
	defer cp.readiness.mu.Unlock()
	return cp.readiness.red
}
