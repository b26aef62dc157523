package controllers

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/component"
)

// TestProgramPanics has a program that panics while its start waits for it: in virtual
// time, where no goroutine may wait for a lock, the start fails and says why, and can be tried
// again.
func TestProgramPanics(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		waits := func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		p := newProgram(cp, "program")
		p.prepare = func(context.Context, *component.Component) (func(context.Context), func(context.Context) error, error) {
			return func(context.Context) { panic("no snow") }, waits, nil
		}
		for range 2 {
			assert.ErrorContains(t, p.Start(context.Background()), "no snow")
		}
		assert.ErrorContains(t, p.Err(), "the program crashed")
		p.prepare = func(context.Context, *component.Component) (func(context.Context), func(context.Context) error, error) {
			panic("not even built")
		}
		assert.ErrorContains(t, p.Start(context.Background()), "not even built")
		assert.Equal(t, []string{
			"note program crashed: one of its goroutines panicked: no snow", "note program crashed: one of its goroutines panicked: no snow",
			"note program crashed: one of its goroutines panicked: not even built",
		}, crashes(cp), "the trace names the program")
	})
}

// crashes are the trace's notes of crashes.
func crashes(cp *envtest.ControlPlane) []string {
	var all []string
	for _, rec := range cp.Trace().Records() {
		if text := rec.Event.String(); strings.Contains(text, " crashed: ") {
			all = append(all, text)
		}
	}
	return all
}

// TestProgramsHaveNames has two programs of one name, and a third that rules know by its own:
// a crash cuts off one of them, under its name, and a client that the test makes is none of
// them.
func TestProgramsHaveNames(t *testing.T) {
	cp := envtest.Start(t, envtest.WithFullTrace())
	programs := []*Program{newProgram(cp, "manager"), newProgram(cp, "manager"), newProgram(cp, "scheduler")}
	configs := map[string]*rest.Config{"own": cp.NewClient().Config()}
	for i, p := range programs {
		p.prepare = func(_ context.Context, c *component.Component) (func(context.Context), func(context.Context) error, error) {
			configs[[]string{"manager", "manager-2", "scheduler"}[i]] = c.Config("jane", "system:masters")
			return func(ctx context.Context) { <-ctx.Done() }, func(context.Context) error { return nil }, nil
		}
		require.NoError(t, p.Start(t.Context()))
	}
	refused := func() []string {
		var all []string
		for name, config := range configs {
			if _, err := kubernetes.NewForConfigOrDie(config).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
				all = append(all, name)
			}
		}
		return all
	}
	for _, name := range []string{"manager", "manager-2", "scheduler"} {
		rule, err := cp.Faults().Inject("partition client name=" + name)
		require.NoError(t, err)
		assert.Equal(t, []string{name}, refused())
		rule.Remove()
	}
	require.NoError(t, programs[1].Crash(t.Context()))
	require.NoError(t, programs[2].Crash(t.Context()))
	assert.Equal(t, []string{"note manager-2 crashed: on purpose", "note scheduler crashed: on purpose"}, crashes(cp))
	require.NoError(t, programs[2].Start(t.Context()))
	rule, err := cp.Faults().Inject("partition client name=scheduler")
	require.NoError(t, err)
	assert.Equal(t, []string{"scheduler"}, refused(), "its name is free again when it starts again")
	rule.Remove()
	for _, p := range programs {
		require.NoError(t, p.Stop(t.Context()))
	}
}

// TestTimersLog has a timer of a program log, as the controller does that evicts Pods when
// their tolerations end. No program's name is on its goroutine.
func TestTimersLog(t *testing.T) {
	const line, plain = "deleting a pod", "marking a node"
	stderr := os.Stderr
	read, write, err := os.Pipe()
	require.NoError(t, err)
	os.Stderr = write
	defer func() { os.Stderr = stderr }()
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		p := newProgram(cp, "program")
		p.prepare = func(context.Context, *component.Component) (func(context.Context), func(context.Context) error, error) {
			run := func(ctx context.Context) {
				fired := make(chan struct{})
				time.AfterFunc(time.Second, func() {
					klog.FromContext(ctx).Info(line)
					klog.FromContext(ctx).V(9).Info("too much")
					klog.Info(plain)
					close(fired)
				})
				<-fired
				<-ctx.Done()
			}
			return run, func(context.Context) error { return nil }, nil
		}
		p.startFor(t)
		time.Sleep(2 * time.Second)
		assert.Contains(t, p.Log(), line)
		assert.NotContains(t, p.Log(), "too much")
		assert.Contains(t, cp.Log(), plain, "of an unnamed part of this control plane, the only one")
	})
	require.NoError(t, write.Close())
	os.Stderr = stderr
	content, err := io.ReadAll(read)
	require.NoError(t, err)
	assert.NotContains(t, string(content), line)
	assert.NotContains(t, string(content), plain)
}
