package upstream

import (
	"context"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

// slowFactory has informers that sync at some time, nil for never.
type slowFactory struct{ synced <-chan time.Time }

func (f slowFactory) WaitForCacheSync(stop <-chan struct{}) map[reflect.Type]bool {
	select {
	case <-f.synced:
	case <-stop:
	}
	return nil
}

// TestInformersFirst has a hook begin when informers have synced, or after a while if they do not.
func TestInformersFirst(t *testing.T) {
	for name, test := range map[string]struct {
		sync   time.Duration // 0 is never
		begins time.Duration
	}{
		"in time": {sync: 30 * time.Millisecond, begins: 30 * time.Millisecond},
		"late":    {sync: time.Second, begins: informersPatience},
		"never":   {begins: informersPatience},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var factory slowFactory
				if test.sync > 0 {
					factory.synced = time.After(test.sync)
				}
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				hook, then := genericapiserver.PostStartHookContext{Context: ctx}, false
				first := NewInformersFirst(func() { then = true }, factory)
				nothing := func(genericapiserver.PostStartHookContext) error { return nil }
				for _, name := range informerHooks {
					require.NoError(t, first.Wrap(name, nothing)(hook))
				}
				began := time.Now()
				err := first.Wrap("another", func(genericapiserver.PostStartHookContext) error {
					assert.Equal(t, test.begins, time.Since(began))
					assert.Equal(t, name == "in time", then)
					return assert.AnError
				})(hook)
				assert.ErrorIs(t, err, assert.AnError)
			})
		})
	}
}
