package process

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientfeatures "k8s.io/client-go/features"
)

// allOn are gates of a server.
type allOn map[clientfeatures.Feature]bool

func (g allOn) Enabled(name clientfeatures.Feature) bool {
	value, set := g[name]
	return value || !set
}

func (g allOn) Set(name clientfeatures.Feature, value bool) error {
	g[name] = value
	return nil
}

// TestClientGates lets the environment speak to clients, and not to a server.
func TestClientGates(t *testing.T) {
	t.Setenv("KUBE_FEATURE_WatchListClient", "false")
	t.Setenv("KUBE_FEATURE_ClientsPreferCBOR", "perhaps")
	t.Setenv("KUBE_FEATURE_NoSuchFeature", "false")
	gates := ClientGates(allOn{})
	assert.False(t, gates.Enabled(clientfeatures.WatchListClient))
	for _, name := range []clientfeatures.Feature{clientfeatures.ClientsPreferCBOR, clientfeatures.ClientsAllowCBOR, "NoSuchFeature"} {
		assert.True(t, gates.Enabled(name), name)
	}
	server := join(t, "server", Flags{})
	server.Do(func() { assert.True(t, gates.Enabled(clientfeatures.WatchListClient)) })

	Steady(func() {
		inherited := make(chan bool)
		go func() { inherited <- gates.Enabled(clientfeatures.WatchListClient) }()
		assert.True(t, <-inherited, "what a script starts")
	})
	assert.False(t, gates.Enabled(clientfeatures.WatchListClient), "after the script")

	setter := gates.(interface {
		Set(name clientfeatures.Feature, value bool) error
	})
	require.NoError(t, setter.Set(clientfeatures.WatchListClient, true))
	assert.True(t, gates.Enabled(clientfeatures.WatchListClient), "who sets it comes first")
}
