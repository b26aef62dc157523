package envtest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/virtualtime"
	"snowglobe.test/internal/pages"
	"snowglobe.test/internal/sample"
)

// TestStartLimit has starts run out of time: each says the limit, what changes it, and what
// the start was waiting for.
func TestStartLimit(t *testing.T) {
	const slow = "delay hook/" + crdHook + " verb=post-start by=5m"
	for name, test := range map[string]struct {
		start func(ctx context.Context) error
		want  []string
	}{
		"not ready": {
			func(ctx context.Context) error { return startsAndStops(ctx, envtest.WithFaults(slow)) },
			[]string{"not within 1m0s, ", "checks that are red: ", "poststarthook/" + crdHook},
		},
		"another limit": {
			func(ctx context.Context) error {
				return startsAndStops(ctx, envtest.WithFaults(slow), envtest.WithTimeouts(90*time.Second, 0))
			},
			[]string{"not within 1m30s, "},
		},
		"a request": {
			func(ctx context.Context) error {
				return startsAndStops(ctx, envtest.WithFaults("delay http/create resource=customresourcedefinitions.apiextensions.k8s.io by=5m"), envtest.WithTimeouts(50*time.Second, 0), envtest.WithCRDs(widgetCRD()))
			},
			[]string{"not within 50s, the limit of the installation of CRDs (", "number 1 of 1: CRD widgets.example.com: "},
		},
		"a slow boot before it": {
			func(ctx context.Context) error {
				return startsAndStops(ctx, envtest.WithFaults("delay hook/"+crdHook+" verb=post-start by=30s", "delay http/create resource=customresourcedefinitions.apiextensions.k8s.io by=5m"), envtest.WithTimeouts(40*time.Second, 0), envtest.WithCRDs(widgetCRD()))
			},
			[]string{"not within 40s, the limit of the installation of CRDs ("},
		},
		"a restart": {restartsSlowly, []string{"restart apiserver-0: ", "not within 1m0s, ", "checks that are red: "}},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "another limit" {
				sample.Long(t)
			}
			var err error
			bubble := virtualtime.Bubble(func() error {
				err = test.start(context.Background())
				return nil
			})
			require.NoError(t, bubble)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			for _, want := range test.want {
				assert.Contains(t, err.Error(), want)
			}
			text := strings.ReplaceAll(err.Error(), "the installation of CRDs", "a start")
			assert.Equal(t, 1, strings.Count(text, ", the limit of a start (WithTimeouts, up --start-timeout, and --timeout of a script's start change it)"), "how often the limit is told in: %v", err)
			pages.Troubleshooting(t, "..", err.Error())
		})
	}
}

// startsAndStops returns why a control plane does not start.
func startsAndStops(ctx context.Context, opts ...envtest.Option) error {
	cp, err := envtest.Launch(ctx, opts...)
	if err != nil {
		return err
	}
	return cp.Stop(ctx)
}

// restartsSlowly returns why a server does not start again.
func restartsSlowly(ctx context.Context) error {
	cp, err := envtest.Launch(ctx)
	if err != nil {
		return err
	}
	server := cp.Servers()[0]
	stopped := server.Stop(ctx)
	_, err = cp.Faults().Inject("delay hook/" + crdHook + " verb=post-start by=5m")
	return errors.Join(stopped, err, server.Restart(ctx), cp.Stop(ctx))
}
