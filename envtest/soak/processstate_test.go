//go:build soak

package soak_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	_ "unsafe" // for linkname

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	etcd3metrics "k8s.io/apiserver/pkg/storage/etcd3/metrics"
	"k8s.io/apiserver/pkg/storage/feature"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/capabilities"
)

// processState looks at what belongs to the process, by the rows of the table in
// ARCHITECTURE.
var processState = map[string]func(t *testing.T) any{
	"klog: flags and output":                 klogState,
	"`klog.OsExit`":                          func(*testing.T) any { return pointers(klog.OsExit) },
	"`PanicHandlers`":                        func(*testing.T) any { return pointers(utilruntime.ReallyCrash, utilruntime.PanicHandlers) },
	"`ErrorHandlers`":                        func(*testing.T) any { return pointers(utilruntime.ErrorHandlers) },
	"`feature.DefaultFeatureSupportChecker`": func(*testing.T) any { return fmt.Sprintf("%p", feature.DefaultFeatureSupportChecker) },
	"`capabilities`":                         func(*testing.T) any { return capabilities.Get() },
	"feature gates":                          gatesState,
	"the limit on JSON patch copies":         func(*testing.T) any { return atomic.LoadInt64(&jsonpatch.AccumulatedCopySizeLimit) },
	"the etcd metrics' monitor getter":       monitoredStores,
	"the clients of KMS v2 plugins":          func(*testing.T) any { return pointers(encryptionconfig.EnvelopeKMSv2ServiceFactory) },
	"the logger of etcd's client":            func(*testing.T) any { return fmt.Sprintf("%p", etcd3ClientLogger) },
	"the block profile":                      func(*testing.T) any { return blockingIsProfiled() },
	"variables that steer servers":           func(*testing.T) any { return os.Getenv(steering) },
}

// steering is a variable of the environment that would steer servers.
const steering = "KUBE_CLIENT_BACKOFF_BASE"

//go:linkname etcd3ClientLogger k8s.io/apiserver/pkg/storage/storagebackend/factory.etcd3ClientLogger
var etcd3ClientLogger *zap.Logger

// lookAtProcess returns the state of every row of the first table.
func lookAtProcess(t *testing.T) map[string]any {
	t.Helper()
	state := map[string]any{}
	for row, look := range processState {
		state[row] = look(t)
	}
	return state
}

// compareProcess complains of what has changed.
func compareProcess(t *testing.T, before map[string]any) {
	t.Helper()
	assert.Empty(t, cmp.Diff(before, lookAtProcess(t)), "process-wide state (-before +after)")
}

// TestProcessState looks at all that ARCHITECTURE says belongs to the process.
func TestProcessState(t *testing.T) {
	assert.NotNil(t, etcd3ClientLogger, "upstream has no etcd3ClientLogger any more: who else does its own etcd clients log to?")
	assert.NotNil(t, grpcLogger, "gRPC has no LoggerV2Impl any more")
	page, err := os.ReadFile("../../docs/ARCHITECTURE.md")
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(page), "\n## What belongs to the process\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var tables [][]string
	for line := range strings.Lines(section) {
		switch cells := strings.Split(line, "|"); {
		case len(cells) == 1:
		case strings.TrimSpace(cells[1]) == "state":
			tables = append(tables, nil)
		case strings.TrimSpace(cells[1]) != "---":
			last := len(tables) - 1
			tables[last] = append(tables[last], strings.TrimSpace(cells[1]))
		}
	}
	require.Len(t, tables, 2, "the section's tables:\n%s", section)
	assert.ElementsMatch(t, tables[0], slices.Collect(maps.Keys(processState)),
		"rows that ARCHITECTURE has, and that TestTeardown looks at")
	assert.ElementsMatch(t, tables[1], slices.Collect(maps.Keys(untouched)),
		"rows that ARCHITECTURE has, and that TestTeardown looks at")
}

// pointers tells functions, channels and lists of functions apart.
func pointers(values ...any) string {
	var text []string
	for _, value := range values {
		switch v := reflect.ValueOf(value); v.Kind() {
		case reflect.Slice:
			for i := range v.Len() {
				text = append(text, pointers(v.Index(i).Interface()))
			}
		case reflect.Func, reflect.Chan, reflect.Pointer:
			text = append(text, fmt.Sprintf("%#x", v.Pointer()))
		default:
			text = append(text, fmt.Sprint(value))
		}
	}
	return strings.Join(text, " ")
}

// klogState is every flag of klog, and whether a stranger's line goes to stderr.
func klogState(t *testing.T) any {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	state := map[string]string{}
	flags.VisitAll(func(f *flag.Flag) { state[f.Name] = f.Value.String() })

	r, w, err := os.Pipe()
	require.NoError(t, err)
	stderr := os.Stderr
	os.Stderr = w
	klog.Info("a stranger's line")
	klog.Flush()
	os.Stderr = stderr
	_ = w.Close()
	line := make([]byte, 1<<10)
	n, _ := r.Read(line) // nothing, if it went elsewhere
	_ = r.Close()
	state["a stranger's line on stderr"] = fmt.Sprint(strings.Contains(string(line[:n]), "a stranger's line"))
	return state
}

func gatesState(*testing.T) any {
	state := map[string]string{}
	gate := utilfeature.DefaultMutableFeatureGate
	for name := range gate.GetAll() {
		state[string(name)] = fmt.Sprintf("%t, set: %t", gate.Enabled(name), gate.ExplicitlySet(name))
	}
	return state
}

// monitoredStores counts the stores whose size is among the metrics.
func monitoredStores(t *testing.T) any {
	etcd3metrics.Register()
	families, err := legacyregistry.DefaultGatherer.Gather()
	assert.NoError(t, err)
	stores := 0
	for _, family := range families {
		if family.GetName() == "apiserver_storage_size_bytes" {
			stores += len(family.GetMetric())
		}
	}
	return stores
}

// blockingIsProfiled blocks, and looks whether the profile has it.
func blockingIsProfiled() bool {
	blocked := func() (events int64) {
		records := make([]runtime.BlockProfileRecord, 10_000)
		n, _ := runtime.BlockProfile(records)
		for _, record := range records[:n] {
			events += record.Count
		}
		return events
	}
	before := blocked()
	meet, done := make(chan struct{}), make(chan struct{})
	go func() {
		meet <- struct{}{} // who comes first blocks
		close(done)
	}()
	<-meet
	<-done
	return blocked() != before
}
