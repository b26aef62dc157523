package upstream

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

// TestWrapHooks wraps hooks of a server without handlers, which is enough of one
// to have hooks.
func TestWrapHooks(t *testing.T) {
	var ran []string
	hook := func(name string) genericapiserver.PostStartHookFunc {
		return func(genericapiserver.PostStartHookContext) error {
			ran = append(ran, name)
			return nil
		}
	}
	config := genericapiserver.NewConfig(codecs())
	require.NoError(t, config.AddPostStartHook("b", hook("b")))
	require.NoError(t, config.AddPostStartHook("a", hook("a")))
	names, err := wrapHooks(reflect.ValueOf(config.PostStartHooks), func(name string, upstream genericapiserver.PostStartHookFunc) genericapiserver.PostStartHookFunc {
		return func(ctx genericapiserver.PostStartHookContext) error {
			ran = append(ran, "before "+name)
			return upstream(ctx)
		}
	})
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b"}, names)
	found, err := PostStartHooks(nil, config)
	require.NoError(t, err)
	require.NoError(t, found["a"](genericapiserver.PostStartHookContext{}))
	assert.Equal(t, []string{"before a", "a"}, ran)

	// The maps of a server, whose types have no name here, have the same shape.
	server := &genericapiserver.GenericAPIServer{}
	names, err = WrapPostStartHooks(server, nil)
	assert.Empty(t, names)
	require.NoError(t, err)
	found, err = PostStartHooks(server, config)
	assert.Empty(t, found)
	require.NoError(t, err)
	names, err = WrapPreShutdownHooks(server, nil)
	assert.Empty(t, names)
	require.NoError(t, err)
}

// TestHooksOfAnotherShape shows the error of a future upstream.
func TestHooksOfAnotherShape(t *testing.T) {
	wrap := func(string, func()) func() { return nil }
	for _, hooks := range []any{
		[]func(){}, map[int]struct{ hook func() }{}, map[string]func(){}, map[string]struct{ run func() }{}, map[string]struct{ hook func() error }{},
	} {
		_, err := wrapHooks(reflect.ValueOf(hooks), wrap)
		assert.ErrorContains(t, err, "upstream changed: ", "%T", hooks)
	}
}
