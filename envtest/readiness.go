package envtest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"snowglobe.test/envtest/trace"
	"snowglobe.test/envtest/virtualtime"
)

// readiness remembers the checks of /readyz as they were last seen.
type readiness struct {
	mu    sync.Mutex
	known map[string]bool
	red   []string
}

// waitStarted waits for readiness, and what comes of it, or, when hooks are held,
// for the server to accept requests.
func (l *life) waitStarted(ctx context.Context) error {
	if l.server.cp.cfg.holds() {
		return l.await(ctx, l.accepting, "the server does not accept requests")
	}
	if err := l.waitReady(ctx); err != nil {
		return err
	}
	return l.await(ctx, l.chain.Load().ReadySignal(), "the server is ready, but its signal HasBeenReady has not fired")
}

// await waits for something that happens unless the server fails or is stopped
// first. Of a failure and what caused it, it tells the failure.
func (l *life) await(ctx context.Context, happens <-chan struct{}, otherwise string) error {
	select {
	case <-happens:
		return l.err()
	case <-l.failed:
		return l.failure
	case <-l.over:
		return l.notRunning()
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", otherwise, context.Cause(ctx))
	}
}

// The pauses between two looks at the checks while the server starts. A hook
// that ends brings the first pause back.
const (
	readyFirstPause = 10 * time.Millisecond
	readyMaxPause   = time.Second
)

// waitReady waits until /readyz answers 200. When the context ends first, the
// error names the checks that are red and the hooks that are held.
func (l *life) waitReady(ctx context.Context) error {
	moved := make(chan struct{}, 1)
	defer l.server.cp.recorder.Subscribe(func(r trace.Record) {
		if _, ok := r.Event.(trace.Hook); ok {
			select {
			case moved <- struct{}{}:
			default:
			}
		}
	})()
	for pause := readyFirstPause; ; pause = min(2*pause, readyMaxPause) {
		if virtualtime.Virtual() {
			time.Sleep(untilOffBeat(time.Now()))
		}
		if l.ready(ctx) {
			return nil
		}
		select {
		case <-time.After(pause):
		case <-moved:
			pause = readyFirstPause / 2
		case <-l.failed:
			return l.failure
		case <-l.over:
			return l.notRunning()
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w; checks that are red: %s; hooks that are held: %s", context.Cause(ctx),
				orNone(l.redChecks()), orNone(l.server.HeldHooks()))
		}
	}
}

// offBeat is how far from whole milliseconds readiness is looked at in virtual
// time. Timers fire on them, so that in between nothing moves, and every run sees
// the same.
const offBeat = 123456 * time.Nanosecond

// untilOffBeat is how long it takes until something next lies off the beat.
func untilOffBeat(now time.Time) time.Duration {
	at := now.Truncate(time.Millisecond).Add(offBeat)
	if !at.After(now) {
		at = at.Add(time.Millisecond)
	}
	return at.Sub(now)
}

func (l *life) notRunning() error { return fmt.Errorf("%s: %w", l.server.name, ErrNotRunning) }

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// ready asks /readyz once, records the checks that turned, and says whether the
// answer was 200.
func (l *life) ready(ctx context.Context) bool {
	if !l.running() {
		return false
	}
	l.readiness.mu.Lock()
	defer l.readiness.mu.Unlock()
	var ready bool
	var checks []trace.Check
	l.member.Do(func() { ready, checks = l.chain.Load().Probe(ctx, "readyz") })
	if len(checks) == 0 && !ready {
		return false // answered by a filter: the server is not that far yet
	}
	r := &l.readiness
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
			l.recorder.Record(check)
		}
	}
	return ready
}

// redChecks returns the readiness checks that were red when they were last
// asked, in upstream's order.
func (l *life) redChecks() []string {
	l.readiness.mu.Lock()
	defer l.readiness.mu.Unlock()
	return l.readiness.red
}
