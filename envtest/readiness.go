package envtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/trace"
	"snowglobe.test/envtest/virtualtime"
	"snowglobe.test/internal/turn"
)

// readiness remembers the checks of /readyz as they were last seen.
type readiness struct {
	// turn is a lock on the rest: a channel, because an answer may take time.
	turn  turn.Lock
	known map[string]bool
	red   []string
}

// waitStarted waits until the server is ready and its signal says so. If rules hold steps
// of its start, it is enough that it accepts requests and that the held hooks have come. If
// they hold anything else, which it may meet or not, the first operation that is held ends
// the wait.
func (i *instance) waitStarted(ctx context.Context) error {
	cfg := i.server.cp.cfg
	if !cfg.holds() {
		return i.waitBooted(ctx)
	}
	if err := i.await(ctx, i.endpoint.Opened(), "the server does not accept requests"); err != nil {
		return err
	}
	if cfg.holdsSteps() {
		return i.awaitHeldHooks(ctx)
	}
	var looking sync.WaitGroup
	defer looking.Wait()
	held, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	looking.Go(func() {
		if _, err := i.recorder.Await(held, i.holdsSomething); err == nil {
			cancel(errHeld)
		}
	})
	err := i.waitBooted(held)
	if failure := i.life.err(); failure != nil {
		return failure
	}
	if context.Cause(held) == errHeld {
		return nil
	}
	return err
}

// errHeld ends the wait for a server to be ready.
var errHeld = errors.New("something is held")

// holdsSomething tells the record of an operation of this server, since it began, that a
// rule holds.
func (i *instance) holdsSomething(r trace.Record) bool {
	event, ok := r.Event.(trace.Fault)
	return ok && event.Phase == trace.Held && event.Server == i.server.name && !r.Time.Before(i.began) &&
		(event.Action == string(fault.Hold) || event.Action == string(fault.Freeze))
}

func (i *instance) waitBooted(ctx context.Context) error {
	if err := i.waitReady(ctx); err != nil {
		return err
	}
	return i.await(ctx, i.chain.Load().ReadySignal(), "the server is ready, but its signal HasBeenReady has not fired")
}

// await waits for an event. If the server has failed, its failure is the error.
func (i *instance) await(ctx context.Context, happens <-chan struct{}, otherwise string) error {
	select {
	case <-happens:
		return i.life.err()
	case <-i.life.past(phaseRunning):
		return i.whyEnded()
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", otherwise, context.Cause(ctx))
	}
}

// The pauses between two looks at the checks. The end of a hook resets the pause.
const (
	readyFirstPause = 10 * time.Millisecond
	readyMaxPause   = time.Second
)

// waitReady is ControlPlane.WaitReady for one server.
func (i *instance) waitReady(ctx context.Context) error {
	moved := make(chan struct{}, 1)
	defer i.server.cp.recorder.Subscribe(func(r trace.Record) {
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
		ready, red := i.ready(ctx)
		if ready {
			return nil
		}
		select {
		case <-time.After(pause):
		case <-moved:
			pause = readyFirstPause / 2
		case <-i.life.past(phaseRunning):
			return i.whyEnded()
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w; checks that are red: %s; hooks that are held: %s", context.Cause(ctx),
				orNone(red), orNone(i.server.cp.faults.HeldHooks(i.server.name)))
		}
	}
}

// offBeat is how far from whole milliseconds, on which timers fire, readiness is
// looked at in virtual time: nothing moves in between, and every run sees the same.
const offBeat = 123456 * time.Nanosecond

// untilOffBeat is how long it is to the next moment off the beat.
func untilOffBeat(now time.Time) time.Duration {
	at := now.Truncate(time.Millisecond).Add(offBeat)
	if !at.After(now) {
		at = at.Add(time.Millisecond)
	}
	return at.Sub(now)
}

// whyEnded is why the server does not run: its failure, or else that it was ended.
func (i *instance) whyEnded() error {
	if failure := i.life.err(); failure != nil {
		return failure
	}
	return i.notRunning()
}

func (i *instance) notRunning() error { return fmt.Errorf("%s: %w", i.server.name, errNotRunning) }

func orNone(names []string) string { return cmp.Or(strings.Join(names, ", "), "none") }

// ready is Server.Ready; red is as of the last answer that listed checks.
func (i *instance) ready(ctx context.Context) (ready bool, red []string) {
	r := &i.readiness
	if r.turn.Take(ctx) != nil {
		return false, nil
	}
	defer r.turn.Give()
	if !i.running() {
		return false, r.red
	}
	var checks []trace.Check
	i.member.Do(func() { ready, checks = i.chain.Load().Probe(ctx, "readyz") })
	if len(checks) == 0 && !ready {
		return false, r.red // answered by a filter: the server is not that far yet
	}
	r.red = nil
	for _, check := range checks {
		if !check.OK {
			r.red = append(r.red, check.Name)
		}
		if was, seen := r.known[check.Name]; !seen || was != check.OK {
			r.known[check.Name] = check.OK
			i.recorder.Record(check)
		}
	}
	return ready, r.red
}

// awaitHeldHooks waits until each post-start hook that a rule holds is indeed held. Hooks run
// concurrently, so one may not have got that far when the server accepts requests.
func (i *instance) awaitHeldHooks(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(i.run, func() { cancel(context.Cause(i.run)) })()
	for _, name := range i.hooksToBeHeld() {
		_, err := i.recorder.Await(ctx, func(r trace.Record) bool {
			hook, ok := r.Event.(trace.Hook)
			return ok && hook.Kind == trace.PostStart && hook.Name == name &&
				r.Server == i.server.cp.traceName(i.server) && !r.Time.Before(i.began)
		})
		if failure := i.life.err(); failure != nil {
			return failure
		}
		if err != nil {
			return fmt.Errorf("post-start hook %q has not come to be held: %w", name, err)
		}
	}
	return nil
}

// hooksToBeHeld are those whose first matching rule holds them unconditionally.
func (i *instance) hooksToBeHeld() []string {
	var names []string
	for _, name := range i.chain.Load().Hooks() {
		op := fault.Operation{
			Point: fault.HookPoint + name, Phase: fault.Before, Server: i.server.name, Verb: string(trace.PostStart),
		}
		for _, entry := range i.server.cp.faults.Rules() {
			rule := entry.Rule()
			if !rule.Covers(&op) {
				continue
			}
			unconditional := fault.Match{Point: rule.Point, Server: rule.Server, Verb: rule.Verb}
			if rule.Action == (fault.Action{Kind: fault.Hold}) && rule.Match == unconditional {
				names = append(names, name)
			}
			break
		}
	}
	return names
}
