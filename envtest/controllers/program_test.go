package controllers

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"snowglobe.test/envtest"
)

// TestProgramPanics has a program that panics while its start waits for it: in virtual
// time, where nobody may wait for a lock, the start fails and says why, and can be tried
// again.
func TestProgramPanics(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		waits := func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		p := newProgram(cp, "program")
		p.prepare = func(context.Context, *envtest.Client) (func(context.Context), func(context.Context) error, error) {
			return func(context.Context) { panic("no snow") }, waits, nil
		}
		for range 2 {
			assert.ErrorContains(t, p.Start(context.Background()), "no snow")
		}
		assert.ErrorContains(t, p.Err(), "the program crashed")
		p.prepare = func(context.Context, *envtest.Client) (func(context.Context), func(context.Context) error, error) {
			panic("not even built")
		}
		assert.ErrorContains(t, p.Start(context.Background()), "not even built")
	})
}
