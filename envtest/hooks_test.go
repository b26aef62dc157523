package envtest_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/trace"
)

const crdHook = "crd-informer-synced"

// TestDelayHook delays a hook by minutes, which only that hook feels.
func TestDelayHook(t *testing.T) {
	const delay = 2 * time.Minute
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		if ran := hookTime(t, cp, crdHook); ran < delay {
			t.Errorf("the delayed hook ran after %s", ran)
		}
		if ran := hookTime(t, cp, "rbac/bootstrap-roles"); ran > time.Minute {
			t.Errorf("another hook ran after %s", ran)
		}
	}, envtest.WithFaults("delay hook/"+crdHook+" verb=post-start by=2m"), envtest.WithTimeouts(2*delay, 0))
}

// hookTime is when a hook started, since the control plane did.
func hookTime(t *testing.T, cp *envtest.ControlPlane, name string) time.Duration {
	t.Helper()
	record, err := cp.Trace().Await(t.Context(), func(r trace.Record) bool {
		hook, ok := r.Event.(trace.Hook)
		return ok && hook.Name == name && hook.Kind == trace.PostStart && hook.Phase == trace.Start
	})
	if err != nil {
		t.Fatal(err)
	}
	return record.Elapsed
}

// TestHoldEveryHook holds everything, and stops without releasing it.
func TestHoldEveryHook(t *testing.T) {
	cp := envtest.Start(t, envtest.HoldHook("*"))
	if held := heldHooks(cp); !slices.Equal(held, hooksOf(cp)) {
		t.Errorf("held are %v of %v", held, hooksOf(cp))
	}
	if ready(t, cp) {
		t.Error("ready with all hooks held")
	}
	if err := cp.ReleaseHook("crd-informer-sync"); err == nil || !strings.Contains(err.Error(), "did you mean "+crdHook) {
		t.Errorf("release of an unknown hook: %v", err)
	}
}

// TestFailHookLater fails a hook of a running server: the server ends with an
// error that names it, and the process goes on.
func TestFailHookLater(t *testing.T) {
	cp, err := envtest.Launch(t.Context(), envtest.HoldHook(crdHook), envtest.WithFaults("fail hook/"+crdHook+" with=error"))
	if err != nil {
		t.Fatal(err)
	}
	if err := cp.ReleaseHook(crdHook); err != nil {
		t.Fatal(err)
	}
	<-cp.Crashed()
	if err := cp.Err(); err == nil || !strings.Contains(err.Error(), crdHook) {
		t.Errorf("the crash is %v", err)
	}
	if err := cp.Stop(t.Context()); err != nil {
		t.Error(err)
	}
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
		if began, now := hookTime(t, cp, name), time.Since(cp.Trace().Records()[0].Time); began > pause || now < pause {
			t.Errorf("the hook began after %s, and the server was ready after %s", began, now)
		}
		_, err := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1().ConfigMaps(object.Namespace).Get(t.Context(), object.Name, metav1.GetOptions{})
		if err != nil {
			t.Errorf("what the hook writes: %v", err)
		}
	}, envtest.WithPostStartHook(name, hook))

	fails := func(context.Context, *rest.Config) error { return errors.New("out of snow") }
	_, err := envtest.Launch(t.Context(), envtest.WithPostStartHook(name, fails))
	if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "out of snow") {
		t.Errorf("a failed hook: %v", err)
	}
}

// TestEarlySignal takes away what holds off 404s until all paths are known.
func TestEarlySignal(t *testing.T) {
	const after = time.Minute
	for _, early := range []bool{false, true} {
		opts := []envtest.Option{envtest.HoldHook(crdHook)}
		if early {
			opts = append(opts, envtest.WithEarlySignal("MuxAndDiscoveryComplete", after))
		}
		envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
			if code := unknownPath(t, cp); code != http.StatusServiceUnavailable {
				t.Errorf("early %t: %d before the signal", early, code)
			}
			time.Sleep(after)
			if code := unknownPath(t, cp); early != (code == http.StatusNotFound) {
				t.Errorf("early %t: %d after the time of the signal", early, code)
			}
		}, opts...)
	}
}

// TestUpstreamPauses finds upstream's own second in the boot, in virtual time.
func TestUpstreamPauses(t *testing.T) {
	took := func(opts ...envtest.Option) (boot time.Duration) {
		envtest.Simulate(t, func(_ *testing.T, cp *envtest.ControlPlane) {
			records := cp.Trace().Records()
			boot = records[len(records)-1].Elapsed
		}, opts...)
		return boot
	}
	prompt, paused := took(), took(envtest.WithUpstreamPauses())
	if prompt >= time.Second || paused < time.Second {
		t.Errorf("a boot takes %s, with upstream's pauses %s; want less and more than a second", prompt, paused)
	}
}

// TestWithoutHousekeeping counts what an idle server does by the clock in an hour.
func TestWithoutHousekeeping(t *testing.T) {
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
	if renewals, watches := inAnHour(); renewals < 300 || watches < 100 {
		t.Errorf("by default %d renewals of leases and %d new watches; want hundreds, or the test counts nothing", renewals, watches)
	}
	if renewals, watches := inAnHour(envtest.WithoutHousekeeping()); renewals < 5 || renewals > 7 || watches > 0 {
		t.Errorf("without housekeeping %d renewals of leases and %d new watches; want six and none", renewals, watches)
	}
}

// TestHoldOfLaterWrite holds nothing of the start, so the start is waited for.
func TestHoldOfLaterWrite(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		if ready, red := cp.Servers()[0].Ready(t.Context()); !ready {
			t.Errorf("Start returned while these checks were red: %s", red)
		}
		_, err := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
		if err != nil {
			t.Error(err)
		}
	}, envtest.WithFaults("hold store/put resource=configmaps name=default/slow optional"))
}
