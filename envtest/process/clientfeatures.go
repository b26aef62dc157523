package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"strconv"
	"sync"
	"unsafe"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientfeatures "k8s.io/client-go/features"
	"k8s.io/klog/v2"
)

// clientGates are gates of client-go's features that tell the servers of the process from
// everybody else in it.
type clientGates struct {
	servers     clientfeatures.Gates
	environment func() environment
	set         sync.Map // names that Set was called with
}

// ClientGates returns gates of client-go's features that are servers' for the goroutines of
// members, and of Steady. For all others KUBE_FEATURE_<name> decides first, as where no program
// has replaced client-go's own gates: kube-apiserver does, as soon as it is linked.
func ClientGates(servers clientfeatures.Gates) clientfeatures.Gates {
	return &clientGates{servers: servers, environment: sync.OnceValue(readEnvironment)}
}

// steady are the labels of goroutines that run Steady. They are made once, and are always known.
var steady = struct {
	context.Context
	labels unsafe.Pointer
}{Context: pprof.WithLabels(context.Background(), pprof.Labels(label+" clients", "steady"))}

func init() { Steady(func() { steady.labels = goroutineLabels() }) }

// Steady runs f, this goroutine for as long, and all that f starts, as clients about which the
// environment has no say: those of scripts and checks, whose outcome is the same on everybody's
// machine.
func Steady(f func()) {
	before := goroutineLabels()
	pprof.SetGoroutineLabels(steady)
	defer setGoroutineLabels(before)
	f()
}

// Enabled implements features.Gates.
func (g *clientGates) Enabled(name clientfeatures.Feature) bool {
	if current() == nil && goroutineLabels() != steady.labels {
		value, given := g.environment()[name]
		if _, set := g.set.Load(name); given && !set {
			return value
		}
	}
	return g.servers.Enabled(name)
}

// Set is what client-go's features/testing calls. It comes before the environment.
func (g *clientGates) Set(name clientfeatures.Feature, value bool) error {
	setter, ok := g.servers.(interface {
		Set(name clientfeatures.Feature, value bool) error
	})
	if !ok {
		return fmt.Errorf("feature %q can't be set: %T has no method Set", name, g.servers)
	}
	g.set.Store(name, true)
	return setter.Set(name, value)
}

// environment is what the environment says of features.
type environment map[clientfeatures.Feature]bool

func readEnvironment() environment {
	e := environment{}
	utilruntime.Must(clientfeatures.AddVersionedFeaturesToExistingFeatureGates(e))
	return e
}

// AddVersioned implements features.VersionedRegistry: client-go calls it with its features. What
// can't be obeyed is logged, as client-go does.
func (e environment) AddVersioned(features map[clientfeatures.Feature]clientfeatures.VersionedSpecs) error {
	for name, specs := range features {
		text, set := os.LookupEnv("KUBE_FEATURE_" + string(name))
		if !set {
			continue
		}
		value, err := strconv.ParseBool(text)
		if newest := specs[len(specs)-1]; err == nil && newest.LockToDefault && value != newest.Default {
			err = errors.New("the feature is locked")
		}
		if err != nil {
			klog.ErrorS(err, "Could not set feature gate", "feature", name, "desiredState", text)
			continue
		}
		e[name] = value
	}
	return nil
}
