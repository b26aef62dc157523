package envtest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/trace"
	"snowglobe.test/internal/sample"
)

const crdHook = "crd-informer-synced"

// TestDelayHook delays a hook by minutes, which only that hook feels.
func TestDelayHook(t *testing.T) {
	const delay = 2 * time.Minute
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		assert.GreaterOrEqual(t, hookTime(t, cp, crdHook), delay, "when the delayed hook ran")
		assert.LessOrEqual(t, hookTime(t, cp, "rbac/bootstrap-roles"), time.Minute, "when another hook ran")
	}, envtest.WithFaults("delay hook/"+crdHook+" verb=post-start by=2m"), envtest.WithTimeouts(2*delay, 0))
}

// hookTime is when a hook started, since the control plane did.
func hookTime(t *testing.T, cp *envtest.ControlPlane, name string) time.Duration {
	t.Helper()
	record, err := cp.Trace().Await(t.Context(), func(r trace.Record) bool {
		hook, ok := r.Event.(trace.Hook)
		return ok && hook.Name == name && hook.Kind == trace.PostStart && hook.Phase == trace.Start
	})
	require.NoError(t, err)
	return record.Elapsed
}

// TestHoldEveryHook holds everything, and stops without releasing it.
func TestHoldEveryHook(t *testing.T) {
	cp := envtest.Start(t, envtest.WithFaults("hold hook/* verb=post-start"))
	assert.Equal(t, hooksOf(cp), heldHooks(cp), "the hooks that are held")
	assert.False(t, ready(t, cp), "ready with all hooks held")
	assert.ErrorContains(t, cp.Faults().Release("hook/crd-informer-sync"), "did you mean hook/"+crdHook, "release of an unknown hook")
}

// TestFailHookLater fails a hook of a running server: the server ends with an
// error that names it, and the process goes on.
func TestFailHookLater(t *testing.T) {
	cp, err := envtest.Launch(t.Context(), envtest.WithFaults("hold hook/"+crdHook, "fail hook/"+crdHook+" with=error"))
	require.NoError(t, err)
	require.NoError(t, cp.Faults().Release("hook/"+crdHook))
	<-cp.Crashed()
	assert.ErrorContains(t, cp.Err(), crdHook)
	assert.NoError(t, cp.Stop(t.Context()))
}

// TestPostStartHook has a hook of its own that writes, and for which the server waits with
// being ready.
func TestPostStartHook(t *testing.T) {
	const name, pause = "example/writer", 20 * time.Second
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "snow", Namespace: metav1.NamespaceSystem}}
	hook := func(ctx context.Context, loopback *rest.Config) error {
		time.Sleep(pause)
		_, err := kubernetes.NewForConfigOrDie(loopback).CoreV1().ConfigMaps(object.Namespace).Create(ctx, object, metav1.CreateOptions{})
		return err
	}
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		began, now := hookTime(t, cp, name), time.Since(cp.Trace().Records()[0].Time)
		assert.LessOrEqual(t, began, pause, "when the hook began")
		assert.GreaterOrEqual(t, now, pause, "when the server was ready")
		_, err := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1().ConfigMaps(object.Namespace).Get(t.Context(), object.Name, metav1.GetOptions{})
		assert.NoError(t, err, "what the hook writes")
	}, envtest.WithPostStartHook(name, hook))

	fails := func(context.Context, *rest.Config) error { return errors.New("out of snow") }
	_, err := envtest.Launch(t.Context(), envtest.WithPostStartHook(name, fails))
	assert.True(t, err != nil && strings.Contains(err.Error(), name) && strings.Contains(err.Error(), "out of snow"), "a failed hook: %v", err)
}

// TestEarlySignal takes away what holds off 404s until all paths are known.
func TestEarlySignal(t *testing.T) {
	const after = time.Minute
	for _, early := range []bool{false, true} {
		rules := []string{"hold hook/" + crdHook}
		if early {
			rules = append(rules, fmt.Sprintf("fire signal/MuxAndDiscoveryComplete by=%s", after))
		}
		envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
			assert.Equal(t, http.StatusServiceUnavailable, unknownPath(t, cp), "before the signal, early %t", early)
			time.Sleep(after)
			code := unknownPath(t, cp)
			assert.Equal(t, early, code == http.StatusNotFound, "early %t: %d after the time of the signal", early, code)
		}, envtest.WithFaults(rules...))
	}
}

// TestUpstreamPauses finds upstream's own second in a boot in virtual time, and only there.
func TestUpstreamPauses(t *testing.T) {
	took := func(opts ...envtest.Option) (boot time.Duration) {
		envtest.Simulate(t, func(_ *testing.T, cp *envtest.ControlPlane) {
			records := cp.Trace().Records()
			boot = records[len(records)-1].Elapsed
		}, opts...)
		return boot
	}
	prompt, paused := took(envtest.WithPromptHooks()), took()
	assert.Less(t, prompt, time.Second, "what a boot takes where its hooks are prompt")
	assert.GreaterOrEqual(t, paused, time.Second, "what a boot takes with upstream's pauses")
}

// TestWithoutHousekeeping counts what an idle server does by the clock in an hour.
func TestWithoutHousekeeping(t *testing.T) {
	sample.Long(t)
	inAnHour := func(opts ...envtest.Option) (renewals, watches int) {
		opts = append(opts, envtest.WithFaults("delay store/put resource=leases.coordination.k8s.io by=1ns", "delay informer/* verb=watch by=1ns optional"))
		envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
			booted := len(cp.Trace().Records())
			time.Sleep(time.Hour)
			for _, record := range cp.Trace().Records()[booted:] {
				switch event, _ := record.Event.(trace.Fault); {
				case event.Phase != trace.Held: // or it would count twice
				case strings.HasPrefix(event.Point, "store/put"):
					renewals++
				case strings.HasPrefix(event.Point, "informer/"):
					watches++
				}
			}
		}, opts...)
		return renewals, watches
	}
	renewals, watches := inAnHour()
	assert.True(t, renewals >= 300 && watches >= 100, "by default %d renewals of leases and %d new watches; want hundreds, or the test counts nothing", renewals, watches)
	renewals, watches = inAnHour(envtest.WithoutHousekeeping())
	assert.True(t, renewals >= 5 && renewals <= 7 && watches == 0, "without housekeeping %d renewals of leases and %d new watches; want six and none", renewals, watches)
}

// TestHoldOfLaterWrite holds nothing of the start, so the start is waited for.
func TestHoldOfLaterWrite(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		ready, red := cp.Servers()[0].Ready(t.Context())
		assert.True(t, ready, "Start returned while these checks were red: %s", red)
		_, err := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
		assert.NoError(t, err)
	}, envtest.WithFaults("hold store/put resource=configmaps name=default/slow optional"))
}
