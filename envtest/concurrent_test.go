package envtest_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"snowglobe.test/envtest"
)

// TestConcurrentMethods calls the methods of a control plane, its servers and its
// clients from many goroutines at once. It is for the race detector; what the
// methods do others show.
func TestConcurrentMethods(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		shared := cp.NewClient()
		together(t, map[string]func(context.Context) error{
			"Schedule": func(ctx context.Context) error {
				scheduler, err := cp.Schedule(ctx)
				if err == nil {
					err = scheduler.Err()
				}
				return err
			},
			"Stop of a Scheduler": func(ctx context.Context) error {
				scheduler, err := cp.Schedule(ctx)
				if err == nil {
					scheduler.Stop()
				}
				return err
			},
			"Settle": func(ctx context.Context) error {
				_, err := cp.Settle(ctx)
				return err
			},
			"Reset": func(ctx context.Context) error { return cp.Reset(ctx) },
			"Snapshot and Restore": func(ctx context.Context) error {
				now, err := cp.Snapshot(ctx)
				if err == nil {
					err = cp.Restore(ctx, now)
				}
				return err
			},
			"WaitReady": cp.WaitReady,
			"Ready and Hooks": func(ctx context.Context) error {
				for _, server := range cp.Servers() {
					server.Ready(ctx)
					cp.Faults().Held()
					_ = server.Log()
				}
				return cp.Err()
			},
			"Inject": func(context.Context) error {
				entry, err := cp.Faults().Inject("delay http/list resource=secrets by=1ms optional")
				if err == nil {
					time.Sleep(time.Millisecond)
					entry.Remove()
				}
				return err
			},
			"requests": func(ctx context.Context) error { return list(ctx, cp.Config()) },
			"requests of others": func(ctx context.Context) error {
				return list(ctx, cp.NewClient().Config(envtest.User("anna", "system:masters")))
			},
			"a client's moves": func(ctx context.Context) error {
				shared.Use(cp.Servers()[1])
				cut, err := cp.Faults().Inject("partition client optional name=" + shared.Name())
				if err != nil {
					return err
				}
				cut.Remove()
				shared.Use(nil)
				return list(ctx, shared.Config())
			},
			"logs and trace": func(context.Context) error {
				_, _ = cp.Log(), cp.Trace().Records()
				return cp.Err()
			},
		})
	}, envtest.WithReplicas(2), envtest.WithSeed(7))
}

// TestConcurrentCrash crashes and restarts a server while others look at it.
func TestConcurrentCrash(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		server := cp.Servers()[1]
		together(t, map[string]func(context.Context) error{
			"Crash and Restart": func(ctx context.Context) error {
				if err := server.Crash(ctx); err != nil {
					return err
				}
				return server.Restart(ctx)
			},
			"looks": func(ctx context.Context) error {
				server.Ready(ctx)
				cp.Faults().Held()
				_, _ = server.Log(), server.Config()
				return nil
			},
			"partition": func(context.Context) error {
				cut, err := cp.Faults().Inject("partition store optional server=" + server.Name())
				if err != nil {
					return err
				}
				time.Sleep(time.Millisecond)
				cut.Remove()
				return nil
			},
			"requests": func(ctx context.Context) error { return list(ctx, cp.Servers()[0].Config()) },
		})
		assert.NoError(t, cp.Err())
	}, envtest.WithReplicas(2))
}

// together calls each function a few times, beside the others.
func together(t *testing.T, functions map[string]func(context.Context) error) {
	t.Helper()
	var users sync.WaitGroup
	for name, f := range functions {
		users.Go(func() {
			for range 3 {
				assert.NoError(t, f(t.Context()), "%s", name)
				time.Sleep(time.Millisecond)
			}
		})
	}
	users.Wait()
}

// list makes a request.
func list(ctx context.Context, config *rest.Config) error {
	_, err := configMapsOf(config).List(ctx, metav1.ListOptions{})
	return err
}
