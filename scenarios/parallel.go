package scenarios

import (
	"context"
	"iter"
	"sync"

	"golang.org/x/sync/semaphore"
)

// RunAll runs scripts, up to parallel of them at a time, and yields their results in the
// order of scripts. A script that must run alone waits for those before it, and those after
// it wait for it. If ctx ends, or the caller stops early, the others end as with Run.
func RunAll(ctx context.Context, scripts []Script, opts Options, parallel int) iter.Seq[Result] {
	return runAll(ctx, scripts, parallel, func(ctx context.Context, script Script) Result { return script.Run(ctx, opts) })
}

func runAll(ctx context.Context, scripts []Script, parallel int, run func(context.Context, Script) Result) iter.Seq[Result] {
	return func(yield func(Result) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel(errInterrupted)
		results := make([]chan Result, len(scripts))
		for i := range results {
			results[i] = make(chan Result, 1)
		}
		running.Go(func() {
			slots := semaphore.NewWeighted(int64(parallel))
			for i, script := range scripts {
				weight := int64(1)
				if script.alone() {
					weight = int64(parallel)
				}
				if slots.Acquire(ctx, weight) != nil {
					results[i] <- Result{Script: script, Status: Failed, Err: context.Cause(ctx)}
					continue
				}
				running.Go(func() {
					defer slots.Release(weight)
					results[i] <- run(ctx, script)
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
