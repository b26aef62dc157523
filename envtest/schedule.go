package envtest

import (
	"snowglobe.test/envtest/trace"
	"snowglobe.test/envtest/virtualtime"
)

// Schedule gives operations their turns from now on, in place of the order
// before: by a seed, or in an order of steps. It is for virtual time. While a
// scheduler runs nobody else may call synctest.Wait; its Idle does that. Stop
// ends it.
func (cp *ControlPlane) Schedule(order virtualtime.Order) *virtualtime.Scheduler {
	cp.Unschedule()
	cp.scheduler = virtualtime.NewScheduler(order, cp.tellTurn)
	cp.faults.Schedule(cp.scheduler)
	return cp.scheduler
}

// Unschedule lets operations go as they come.
func (cp *ControlPlane) Unschedule() {
	if cp.scheduler != nil {
		cp.faults.Schedule(nil)
		cp.scheduler.Stop()
		cp.scheduler = nil
	}
}

// tellTurn puts a turn into a full trace.
func (cp *ControlPlane) tellTurn(turn virtualtime.Turn) {
	if !cp.cfg.fullTrace {
		return
	}
	op := turn.Operation
	cp.recorder.Record(trace.Turn{
		Number: turn.Number, Cause: turn.Cause, Point: op.Point, Phase: string(op.Phase), Server: op.Server, Verb: op.Verb,
		Resource: op.Resource, Namespace: op.Namespace, Name: op.Name, Key: op.Key, Caller: op.Caller, Occurrence: op.Occurrence,
	})
}
