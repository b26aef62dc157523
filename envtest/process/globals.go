package process

import (
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	_ "unsafe" // for linkname

	"go.uber.org/zap"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/storage/feature"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	featuremetrics "k8s.io/component-base/metrics/prometheus/feature"

	"snowglobe.test/internal/etcdlog"
)

// onGiveBack adds what giveBack has to do; what was added last comes first.
func onGiveBack(f func()) { shared.giveBack = append(shared.giveBack, f) }

func giveBack() {
	for _, f := range slices.Backward(shared.giveBack) {
		f()
	}
	shared.giveBack = nil
}

// takeOver replaces the state of the process; giveBack restores it, also on error.
func takeOver(flags Flags) error {
	if err := takeOverKlog(flags.Verbosity); err != nil {
		return err
	}
	takeOverHandlers()
	takeOverKMS()
	takeOverEnvironment()
	takeOverStoreClients()

	checker := feature.DefaultFeatureSupportChecker
	onGiveBack(func() { feature.DefaultFeatureSupportChecker = checker })
	feature.DefaultFeatureSupportChecker = feature.NewDefaultFeatureSupportChecker()

	takeOverMonitors()
	clientLogger := etcd3ClientLogger
	onGiveBack(func() { etcd3ClientLogger = clientLogger })
	etcd3ClientLogger = etcdlog.New()
	copies := atomic.LoadInt64(&jsonpatch.AccumulatedCopySizeLimit)
	onGiveBack(func() { atomic.StoreInt64(&jsonpatch.AccumulatedCopySizeLimit, copies) })
	for _, take := range flags.TakeOver {
		onGiveBack(take())
	}
	if err := setGates(flags.Gates); err != nil {
		return err
	}
	// /metrics reports the feature gates, as that of the command kube-apiserver does once its flags are parsed.
	onGiveBack(featuremetrics.ResetFeatureInfoMetric)
	utilfeature.DefaultMutableFeatureGate.AddMetrics()
	return nil
}

// etcd3ClientLogger is what upstream's own clients of the store log to: lines of JSON
// on stderr, of no control plane.
//
//go:linkname etcd3ClientLogger k8s.io/apiserver/pkg/storage/storagebackend/factory.etcd3ClientLogger
var etcd3ClientLogger *zap.Logger

// serverVariables would decide whether a server starts, and how it answers, on one machine
// and not on the next. Where upstream has flags instead, they work as ever. Client-go reads
// the first two at each request, and so a server's own clients do: they pause for seconds
// after an error, for longer than a server's hooks wait.
//
// What upstream reads when the process begins is too late to take away. It has five such
// switches, all for detectors of its tests, which end the process when they find a mistake:
// who sets them wants that, and docs/limits.md names them.
var serverVariables = []string{
	"KUBE_CLIENT_BACKOFF_BASE",
	"KUBE_CLIENT_BACKOFF_DURATION",
	"KUBE_APISERVER_SERVE_REMOVED_APIS_FOR_ONE_RELEASE",   // serves more; keeps a server from starting if it is no boolean
	"KUBE_APISERVER_STRICT_REMOVED_API_HANDLING_IN_ALPHA", // the same
	"KUBE_APISERVER_AVOID_NOOP_SSA_TIMESTAMP_UPDATES",     // lets an apply that changes nothing make a new resourceVersion; read once in a process
}

// takeOverEnvironment keeps the environment of a machine from steering servers. Who wants
// these variables for a client can set them once a server runs.
func takeOverEnvironment() {
	for _, name := range serverVariables {
		if value, set := os.LookupEnv(name); set {
			onGiveBack(func() { _ = os.Setenv(name, value) })
			_ = os.Unsetenv(name)
		}
	}
}

func setGates(gates map[featuregate.Feature]bool) error {
	if len(gates) == 0 {
		return nil
	}
	gate := utilfeature.DefaultMutableFeatureGate
	set, before := map[string]bool{}, map[string]bool{}
	var unset []featuregate.Feature
	for name, value := range gates {
		set[string(name)], before[string(name)] = value, gate.Enabled(name)
		if !gate.ExplicitlySet(name) {
			unset = append(unset, name)
		}
	}
	onGiveBack(func() {
		// First all values, so that no dependency between gates is violated on
		// the way, then the memory of having been set.
		utilruntime.Must(gate.SetFromMap(before))
		for _, name := range unset {
			utilruntime.Must(gate.ResetFeatureValueToDefault(name))
		}
	})
	if err := gate.SetFromMap(set); err != nil {
		return fmt.Errorf("set feature gates: %w", err)
	}
	return nil
}
