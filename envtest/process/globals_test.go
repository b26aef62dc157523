package process

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	etcd3metrics "k8s.io/apiserver/pkg/storage/etcd3/metrics"
	"k8s.io/apiserver/pkg/storage/feature"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
)

// state is what this package replaces, without feature gates.
func state() map[string]string {
	pointer := func(v any) string { return fmt.Sprintf("%#x", reflect.ValueOf(v).Pointer()) }
	state := map[string]string{
		"wait.NeverStop":  pointer(wait.NeverStop),
		"OsExit":          pointer(klog.OsExit),
		"PanicHandlers":   pointer(utilruntime.PanicHandlers),
		"ErrorHandlers":   pointer(utilruntime.ErrorHandlers),
		"ReallyCrash":     fmt.Sprint(utilruntime.ReallyCrash),
		"feature checker": fmt.Sprintf("%p", feature.DefaultFeatureSupportChecker),
		"KMS clients":     pointer(encryptionconfig.EnvelopeKMSv2ServiceFactory),
		"etcd's logger":   fmt.Sprintf("%p", etcd3ClientLogger),
		"storage monitor": fmt.Sprintf("%p", storageMonitor),
		"copies":          fmt.Sprint(atomic.LoadInt64(&jsonpatch.AccumulatedCopySizeLimit)),
	}
	for _, name := range serverVariables {
		state[name] = os.Getenv(name)
	}
	klogFlags().VisitAll(func(f *flag.Flag) { state["klog "+f.Name] = f.Value.String() })
	return state
}

func klogFlags() *flag.FlagSet {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	return flags
}

func compare(t *testing.T, before, after map[string]string) {
	t.Helper()
	assert.Empty(t, cmp.Diff(before, after), "process-wide state (-before +after)")
}

// TestGiveBack compares the state before a member with that after it, in which all
// of it was changed.
func TestGiveBack(t *testing.T) {
	for _, name := range serverVariables {
		t.Setenv(name, "30")
	}
	before := state()
	m := join(t, "first", Flags{})
	during := state()
	for _, name := range append([]string{
		"OsExit", "PanicHandlers", "ErrorHandlers", "feature checker", "KMS clients", "etcd's logger", "storage monitor", "klog logtostderr", "klog stderrthreshold",
	}, serverVariables...) {
		assert.NotEqual(t, before[name], during[name], "%s is not replaced", name)
	}
	for _, name := range []string{"wait.NeverStop", "ReallyCrash"} {
		assert.Equal(t, before[name], during[name], "%s is replaced", name)
	}
	atomic.StoreInt64(&jsonpatch.AccumulatedCopySizeLimit, 7)
	require.NoError(t, klogFlags().Set("v", "9")) // as /debug/flags/v does
	etcd3metrics.Register()
	etcd3metrics.SetStorageMonitorGetter(func() ([]etcd3metrics.Monitor, error) {
		t.Error("the metrics of etcd ask for a member that has left")
		return nil, nil
	})
	m.Leave()
	compare(t, before, state())
	_, err := legacyregistry.DefaultGatherer.Gather()
	assert.NoError(t, err)
}

// TestLogRouter sends each line to whose goroutine writes it, and leaves klog as it
// was, also where another package has set it.
func TestLogRouter(t *testing.T) {
	strangers := logToBuffer(t)
	before := state()

	logs := map[string]*syncBuffer{"one": {}, "two": {}}
	var group sync.WaitGroup
	var members []*Member
	for name, log := range logs {
		m, err := Join(name, Flags{}, log, nil)
		require.NoError(t, err)
		members = append(members, m)
		group.Go(func() { m.Do(func() { klog.Warning("a line of " + name) }) })
	}
	group.Wait()
	for _, m := range members {
		m.Leave()
	}
	for name, log := range logs {
		got := log.String()
		assert.Equal(t, 1, strings.Count(got, "\n"), "the log of %s", name)
		assert.Contains(t, got, "a line of "+name, "the log of %s", name)
	}
	compare(t, before, state())
	klog.Warning("a line of no server")
	klog.Flush()
	got := strangers.String()
	assert.False(t, !strings.Contains(got, "a line of no server") || strings.Contains(got, "a line of one"), "the log of strangers: %q", got)
}

// TestStrangersLog has goroutines log that are no member's: to stderr, without credentials,
// but for those of timers while one member adopts them.
func TestStrangersLog(t *testing.T) {
	stderr := os.Stderr
	read, write, err := os.Pipe()
	require.NoError(t, err)
	os.Stderr = write
	defer func() { os.Stderr = stderr }()
	var logs [2]syncBuffer
	var members [2]*Member
	timer := func(line string) {
		logged := make(chan struct{})
		time.AfterFunc(0, func() {
			defer close(logged)
			klog.Info(line)
		})
		<-logged
	}
	for i := range members {
		members[i], err = Join(fmt.Sprint("member-", i), Flags{}, &logs[i], nil)
		require.NoError(t, err)
		members[i].AdoptTimers()
		timer(fmt.Sprint("a timer beside ", i+1))
	}
	klog.Info("Authorization: Bearer abcdefghijklmnop")
	members[0].Leave()
	timer("a timer at last")
	members[1].Leave()
	_ = write.Close()
	os.Stderr = stderr
	content, err := io.ReadAll(read)
	require.NoError(t, err)
	for _, c := range []struct {
		log, want string
		not       []string
	}{
		{logs[0].String(), "a timer beside 1", []string{"beside 2", "at last", "earer"}},
		{logs[1].String(), "a timer at last", []string{"beside", "earer"}},
		{string(content), "a timer beside 2", []string{"beside 1", "at last", "abcdefghijklmnop"}},
		{string(content), "Authorization: Bearer [token ", nil},
	} {
		assert.Contains(t, c.log, c.want)
		for _, not := range c.not {
			assert.NotContains(t, c.log, not)
		}
	}
}

// logToBuffer has klog write to a buffer until the test ends.
func logToBuffer(t *testing.T) *syncBuffer {
	var log syncBuffer
	klog.LogToStderr(false)
	klog.SetOutput(&log)
	t.Cleanup(func() {
		klog.LogToStderr(true)
		klog.SetOutput(os.Stderr)
	})
	return &log
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

// String returns what was written.
func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// TestNeverStop has a stranger's informer that runs until wait.NeverStop, and a
// stranger that reads the variable at any time, while members come and go and klog,
// whose settings the informer reads, is taken over and given back. Only -race sees that
// they are written to.
func TestNeverStop(t *testing.T) {
	logToBuffer(t)
	source := fcache.NewFakeControllerSource()
	informer := cache.NewSharedIndexInformer(source, &corev1.ConfigMap{}, 0, nil)
	seen := make(chan string)
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { seen <- object.(*corev1.ConfigMap).Name },
	})
	require.NoError(t, err)
	done := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() {
		never := wait.NeverStop
		for {
			select {
			case <-done:
				return
			default:
			}
			if wait.NeverStop != never {
				t.Error("wait.NeverStop has changed")
				return
			}
			runtime.Gosched()
		}
	})
	for i := range 3 {
		m := join(t, fmt.Sprint("member-", i), Flags{})
		if i == 0 {
			go informer.Run(wait.NeverStop) // for ever, as it says
		}
		m.Leave()
		name := fmt.Sprint("map-", i)
		source.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}})
		assert.Equal(t, name, <-seen, "the informer has seen")
	}
	assert.False(t, informer.IsStopped(), "the informer has stopped")
	close(done)
	reader.Wait()
}

// TestContentionProfile ends with the last member that wanted it.
func TestContentionProfile(t *testing.T) {
	one := join(t, "one", Flags{ContentionProfiling: true})
	runtime.SetBlockProfileRate(1) // as upstream does
	two := join(t, "two", Flags{ContentionProfiling: true})
	three := join(t, "three", Flags{})
	assert.True(t, blockingIsProfiled(), "nothing is profiled, or the test does not see it")
	one.Leave()
	assert.True(t, blockingIsProfiled(), "the profile ends with the first member that wanted it")
	two.Leave()
	assert.False(t, blockingIsProfiled(), "the profile goes on after the last member that wanted it")
	three.Leave()
}

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

// TestTakeOverIsLogged has upstream warn of a feature gate while it is set and given back:
// in the member's log, and not on the terminal of whoever starts a control plane.
func TestTakeOverIsLogged(t *testing.T) {
	strangers := logToBuffer(t)
	for name, spec := range utilfeature.DefaultMutableFeatureGate.GetAll() {
		if spec.PreRelease != featuregate.GA || spec.LockToDefault {
			continue
		}
		var log syncBuffer
		m, err := Join("gated", Flags{Gates: map[featuregate.Feature]bool{name: !utilfeature.DefaultFeatureGate.Enabled(name)}}, &log, nil)
		if err != nil {
			continue // another gate depends on it
		}
		m.Leave()
		klog.Flush()
		got := strings.Count(log.String(), string(name))
		assert.Equal(t, 2, got, "%s: %d lines in the log of the member, want 2; elsewhere: %s", name, got, strangers)
		assert.NotContains(t, strangers.String(), string(name), "%s: %d lines in the log of the member, want 2; elsewhere: %s", name, got, strangers)
		return
	}
	t.Error("no feature gate is one that upstream warns of, so that this shows nothing")
}
