package upstream

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

// codecs are enough to make a configuration.
func codecs() serializer.CodecFactory { return serializer.NewCodecFactory(runtime.NewScheme()) }

// TestLifecycleSignals fails when upstream's signals have changed their shape or
// their names.
func TestLifecycleSignals(t *testing.T) {
	config := genericapiserver.NewConfig(codecs())
	var names []string
	require.NoError(t, ReplaceSignals(config, func(s LifecycleSignal) LifecycleSignal {
		names = append(names, s.Name())
		if s.Name() == InFlightRequestsDrained {
			return &lateSignal{s, nil}
		}
		return s
	}))
	assert.Subset(t, names, []string{HasBeenReady, MuxAndDiscoveryComplete, NotAcceptingNewRequest, InFlightRequestsDrained, HTTPServerStoppedListening},
		"upstream has no such lifecycle signals any more")
	assert.Nil(t, config.DrainedNotify(), "upstream does not see what stands in the place of its signals")
}

func TestFired(t *testing.T) {
	require.NoError(t, ReplaceSignals(genericapiserver.NewConfig(codecs()), func(s LifecycleSignal) LifecycleSignal {
		assert.False(t, Fired(s))
		s.Signal()
		assert.True(t, Fired(s))
		return s
	}))
}
