package envtest

import (
	"context"
	"errors"
	"fmt"

	"snowglobe.test/envtest/trace"
	"snowglobe.test/envtest/virtualtime"
	"snowglobe.test/internal/turn"
)

// scheduling lets only one, a scheduler or Settle, wait for the bubble to be idle.
type scheduling struct {
	// turn is a lock on the rest: a channel, so that time passes while others wait.
	turn      turn.Lock
	scheduler *virtualtime.Scheduler // nil if operations go as they come
}

func newScheduling() *scheduling { return &scheduling{turn: turn.New()} }

// do calls f in its turn.
func (s *scheduling) do(ctx context.Context, f func() error) error {
	if err := s.turn.Take(ctx); err != nil {
		return fmt.Errorf("another Settle, Reset or Schedule waits for virtual time: %w", err)
	}
	defer s.turn.Give()
	return f()
}

// running returns the scheduler if there is one that gives turns.
func (s *scheduling) running() *virtualtime.Scheduler {
	if s.scheduler == nil || s.scheduler.Stopped() {
		return nil
	}
	return s.scheduler
}

var errRealTime = errors.New("operations have an order in virtual time only; use Simulate or SimulateContext")

// Schedule gives operations their turns from now on, in virtual time: those that
// match a step in the order of the steps, all others by their priority, which the
// seed decides (WithSeed). A step is written as a rule's match, such as "store/put
// resource=configmaps name=default/a"; " #2" after it means the second such
// operation. The scheduler replaces the previous one. Its Err says which step is
// missing, and its Stop ends the order, as does the end of the control plane. While it
// runs, use its Idle in place of synctest.Wait, which nothing else may call.
func (cp *ControlPlane) Schedule(ctx context.Context, steps ...string) (*virtualtime.Scheduler, error) {
	order, err := cp.cfg.orderOf(steps)
	if err != nil {
		return nil, err
	}
	order.Seed = cp.faults.Seed()
	var scheduler *virtualtime.Scheduler
	err = cp.scheduling.do(ctx, func() error {
		cp.endScheduler()
		scheduler = virtualtime.NewScheduler(order, cp.recordTurn)
		cp.scheduling.scheduler = scheduler
		cp.faults.Schedule(scheduler)
		return nil
	})
	return scheduler, err
}

// startOrder begins the options' order. In real time it refuses steps, not a seed.
func (cp *ControlPlane) startOrder(ctx context.Context) error {
	if cp.cfg.steps == nil && (!cp.cfg.seeded || !virtualtime.Virtual()) {
		return nil
	}
	_, err := cp.Schedule(ctx, cp.cfg.steps...)
	return err
}

// orderOf is the order of steps, with the seed of the control plane.
func (c *config) orderOf(steps []string) (virtualtime.Order, error) {
	order := virtualtime.Order{Seed: c.seed, Latency: !c.noLatency}
	if !virtualtime.Virtual() {
		return order, errRealTime
	}
	for _, text := range steps {
		step, err := virtualtime.ParseStep(text)
		if err != nil {
			return order, err
		}
		order.Steps = append(order.Steps, step)
	}
	return order, nil
}

// unschedule lets operations go as they come.
func (cp *ControlPlane) unschedule(ctx context.Context) error {
	return cp.scheduling.do(ctx, func() error {
		cp.endScheduler()
		return nil
	})
}

// endScheduler stops the scheduler there is; the caller has the turn.
func (cp *ControlPlane) endScheduler() {
	if s := cp.scheduling.scheduler; s != nil {
		cp.faults.Schedule(nil)
		s.Stop()
		cp.scheduling.scheduler = nil
	}
}

// awaitIdle waits until the bubble is idle, with the scheduler if there is one,
// else if alone with synctest.Wait, which only one goroutine may call.
func (cp *ControlPlane) awaitIdle(ctx context.Context, alone bool) error {
	return cp.scheduling.do(ctx, func() error {
		for {
			s := cp.scheduling.running()
			if s == nil && alone {
				return virtualtime.Idle(ctx, idlePatience)
			}
			if err := virtualtime.Rest(ctx, idlePatience); err != nil || s == nil {
				return err
			}
			if err := s.Idle(ctx); err == nil || !s.Stopped() {
				return err
			}
			// Another caller has stopped it meanwhile.
		}
	})
}

// recordTurn puts a turn into a full trace.
func (cp *ControlPlane) recordTurn(turn virtualtime.Turn) {
	if !cp.cfg.fullTrace {
		return
	}
	op := turn.Operation
	cp.recorder.Record(trace.Turn{
		Number: turn.Number, Cause: turn.Cause, Point: op.Point, Phase: string(op.Phase), Server: op.Server, Verb: op.Verb,
		Resource: op.Resource, Namespace: op.Namespace, Name: op.Name, Key: op.Key, Caller: op.Caller, Occurrence: op.Occurrence,
	})
}
