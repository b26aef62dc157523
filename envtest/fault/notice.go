package fault

import (
	"context"

	"snowglobe.test/envtest/trace"
)

type noticeKey struct{}

// WithNotice returns a context with which At calls notify when a rule begins to make
// the operation wait, trace.Held, and when that wait has ended, trace.Released.
func WithNotice(ctx context.Context, notify func(trace.Phase, Rule)) context.Context {
	return context.WithValue(ctx, noticeKey{}, notify)
}

func noticeOf(ctx context.Context) func(trace.Phase, Rule) {
	if notify, ok := ctx.Value(noticeKey{}).(func(trace.Phase, Rule)); ok {
		return notify
	}
	return func(trace.Phase, Rule) {}
}
