package chain

import (
	"os"
	"slices"
	"testing"

	"golang.org/x/mod/modfile"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericapiserver "k8s.io/apiserver/pkg/server"
	aggregatorapiserver "k8s.io/kube-aggregator/pkg/apiserver"
)

// The tests of this file fail with a plain message when what the chain reaches
// for inside upstream has changed its shape.

func TestLifecycleSignals(t *testing.T) {
	var names []string
	for _, s := range lifecycleSignals(genericapiserver.NewConfig(codecs())) {
		names = append(names, s.Interface().(signal).Name())
	}
	for _, want := range []string{notAcceptingNewRequest, inFlightRequestsDrained, hasBeenReady, muxAndDiscoveryComplete} {
		if !slices.Contains(names, want) {
			t.Errorf("upstream has no lifecycle signal %s any more; it has %v", want, names)
		}
	}
}

func TestAPIVersionPriorities(t *testing.T) {
	apps := schema.GroupVersion{Group: "apps", Version: "v1"}
	if apiVersionPriorities[apps].Group == 0 {
		t.Errorf("upstream's priorities say nothing of %s: %v", apps, apiVersionPriorities)
	}
}

// TestRelease compares with go.mod, which a test binary does not carry.
func TestRelease(t *testing.T) {
	content, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	file, err := modfile.Parse("go.mod", content, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, require := range file.Require {
		if require.Mod.Path == kubernetesModule && require.Mod.Version != Release() {
			t.Errorf("Release() = %s, go.mod requires %s", Release(), require.Mod.Version)
		}
	}
}

func TestOpenAPIQueue(t *testing.T) {
	if queue := openAPIQueue(&aggregatorapiserver.APIAggregator{}); queue != nil {
		t.Errorf("an aggregator without OpenAPI has the queue %v", queue)
	}
}
