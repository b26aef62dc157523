package scenarios

import (
	"context"
	"iter"
	"sync"

	"golang.org/x/sync/semaphore"

	"snowglobe.test/scenarios/engine"
	"snowglobe.test/scenarios/script"
)

// RunAll runs scripts, up to parallel of them at a time, and yields their results in the
// order of scripts. A script that must run alone waits for those before it, and those after
// it wait for it. If ctx ends, or the caller stops early, the others end as with Run.
func RunAll(ctx context.Context, scripts []script.Script, opts Options, parallel int) iter.Seq[Result] {
	return runAll(ctx, scripts, parallel, func(ctx context.Context, one script.Script) Result { return Run(ctx, one, opts) })
}

func runAll(ctx context.Context, scripts []script.Script, parallel int, run func(context.Context, script.Script) Result) iter.Seq[Result] {
	return func(yield func(Result) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel(engine.ErrInterrupted)
		results := make([]chan Result, len(scripts))
		for i := range results {
			results[i] = make(chan Result, 1)
		}
		running.Go(func() {
			slots := semaphore.NewWeighted(int64(parallel))
			for i, one := range scripts {
				weight := int64(1)
				if alone(one) {
					weight = int64(parallel)
				}
				if slots.Acquire(ctx, weight) != nil {
					results[i] <- Result{Script: one, Status: Failed, Err: context.Cause(ctx)}
					continue
				}
				running.Go(func() {
					defer slots.Release(weight)
					results[i] <- run(ctx, one)
				})
			}
		})
		for _, result := range results {
			if !yield(<-result) {
				return
			}
		}
	}
}
