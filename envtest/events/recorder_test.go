package events_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientevents "k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"snowglobe.test/envtest/events"
)

var (
	pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "5e4f", ResourceVersion: "12"}}
	ref = corev1.ObjectReference{Kind: "Pod", Name: "web", Namespace: "default", UID: "5e4f", ResourceVersion: "12"}
)

// because is what an Await of an event with a reason looks for.
func because(reason string) func(events.Event) bool {
	return func(e events.Event) bool { return e.Reason == reason }
}

func TestRecorder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var recorder events.Recorder
		var old record.EventRecorder = recorder.WithLogger(klog.Background())
		start := time.Now()
		old.Event(pod, corev1.EventTypeNormal, "Pulled", "100%")
		time.Sleep(time.Second)
		old.Eventf(pod, corev1.EventTypeWarning, "Failed", "exit code %d", 3)
		annotations := map[string]string{"a": "b"}
		old.AnnotatedEventf(pod, annotations, corev1.EventTypeNormal, "Started", "%d of %d", 1, 2)
		annotations["a"] = "changed afterwards"
		assert.Equal(t, []events.Event{
			{Regarding: ref, Type: "Normal", Reason: "Pulled", Note: "100%", Time: start},
			{Regarding: ref, Type: "Warning", Reason: "Failed", Note: "exit code 3", Time: start.Add(time.Second)},
			{Regarding: ref, Type: "Normal", Reason: "Started", Note: "1 of 2", Annotations: map[string]string{"a": "b"}, Time: start.Add(time.Second)},
		}, recorder.All())
	})
}

func TestEventsV1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var recorder events.Recorder
		var current clientevents.EventRecorder = recorder.EventsV1().WithLogger(klog.Background())
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-0"}}
		current.Eventf(pod, node, corev1.EventTypeNormal, "Scheduled", "Binding", "assigned to %s", "node-0")
		annotations := map[string]string{"a": "b"}
		current.(clientevents.AnnotatedEventRecorder).AnnotatedEventf(pod, nil, annotations, corev1.EventTypeNormal, "Scheduled", "Binding", "again")
		annotations["a"] = "changed afterwards"
		assert.Equal(t, []events.Event{
			{Regarding: ref, Related: &corev1.ObjectReference{Kind: "Node", Name: "node-0"}, Type: "Normal", Reason: "Scheduled", Action: "Binding", Note: "assigned to node-0", Time: time.Now()},
			{Regarding: ref, Type: "Normal", Reason: "Scheduled", Action: "Binding", Note: "again", Annotations: map[string]string{"a": "b"}, Time: time.Now()},
		}, recorder.All())
	})
}

func TestRegarding(t *testing.T) {
	custom := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.test/v1", "kind": "Snowfall", "metadata": map[string]any{"name": "x"}}}
	known := pod.DeepCopy()
	known.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	for name, test := range map[string]struct {
		object runtime.Object
		want   corev1.ObjectReference
		shown  string
	}{
		"typed":        {pod, ref, "pod/web"},
		"with kind":    {known, corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Name: "web", Namespace: "default", UID: "5e4f", ResourceVersion: "12"}, "pod/web"},
		"unstructured": {custom, corev1.ObjectReference{APIVersion: "example.test/v1", Kind: "Snowfall", Name: "x"}, "snowfall/x"},
		"reference":    {&corev1.ObjectReference{Name: "web", FieldPath: "spec.containers{web}"}, corev1.ObjectReference{Name: "web", FieldPath: "spec.containers{web}"}, "web"},
		"list":         {&corev1.PodList{}, corev1.ObjectReference{}, ""},
		"nothing":      {nil, corev1.ObjectReference{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var recorder events.Recorder
			recorder.Event(test.object, "Normal", "Seen", " it snows\n")
			assert.Equal(t, test.want, recorder.All()[0].Regarding)
			assert.Equal(t, "Normal   Seen   "+test.shown+"   it snows", recorder.All()[0].String())
		})
	}
}

// The object goes on changing, and readers change what they got.
func TestEventsAreKept(t *testing.T) {
	var recorder events.Recorder
	changing := pod.DeepCopy()
	regarding := &corev1.ObjectReference{Name: "web"}
	recorder.Event(changing, "Normal", "First", "")
	recorder.EventsV1().Eventf(pod, regarding, "Normal", "Second", "", "")
	changing.Name, regarding.Name = "changed afterwards", "changed afterwards"
	recorder.All()[0].Reason = "changed by a reader"
	assert.Equal(t, "Normal   First   pod/web   ", recorder.All()[0].String())
	assert.Equal(t, "web", recorder.All()[1].Related.Name)
}

// FakeRecorder would block in a bubble for ever, which synctest reports.
func TestNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var recorder events.Recorder
		ctx, cancel := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		waiting.Go(func() {
			_, err := recorder.Await(ctx, func(e events.Event) bool {
				<-ctx.Done() // it is slow to look
				return false
			})
			assert.ErrorIs(t, err, context.Canceled)
		})
		for i := range 5000 {
			recorder.Eventf(pod, "Normal", "Counted", "%d", i)
		}
		assert.Len(t, recorder.All(), 5000)
		cancel()
		waiting.Wait()
	})
}

func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var recorder events.Recorder
		start := time.Now()
		go func() {
			recorder.Event(pod, "Normal", "Pulled", "")
			time.Sleep(time.Hour)
			recorder.Event(pod, "Normal", "Created", "")
			recorder.Event(pod, "Normal", "Started", "first")
			recorder.Event(pod, "Normal", "Started", "second")
		}()
		got, err := recorder.Await(t.Context(), because("Started"))
		require.NoError(t, err)
		assert.Equal(t, "first", got.Note)
		assert.Equal(t, time.Hour, time.Since(start))
	})
}

// What has been recorded counts, even if there is no time left to wait.
func TestAwaitOfWhatIsThere(t *testing.T) {
	var recorder events.Recorder
	recorder.Event(pod, "Normal", "Pulled", "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got, err := recorder.Await(ctx, because("Pulled"))
	require.NoError(t, err)
	assert.Equal(t, "Pulled", got.Reason)
}

// The last event comes in the moment in which the context ends.
func TestAwaitAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 100 { // select chooses at random
			var recorder events.Recorder
			ctx, cancel := context.WithCancel(t.Context())
			var waiting sync.WaitGroup
			waiting.Go(func() {
				_, err := recorder.Await(ctx, because("Started"))
				assert.NoError(t, err)
			})
			synctest.Wait()
			recorder.Event(pod, "Normal", "Started", "")
			cancel()
			waiting.Wait()
		}
	})
}

func TestAwaitFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var recorder events.Recorder
		await := func() error {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("a minute has passed"))
			defer cancel()
			_, err := recorder.Await(ctx, because("Started"))
			return err
		}
		assert.EqualError(t, await(), "await an event: a minute has passed; none was recorded")
		recorder.Event(pod, "Normal", "Pulled", "in 3s")
		recorder.Event(pod, "Warning", "Failed", "no such file")
		assert.EqualError(t, await(), `await an event: a minute has passed; 2 were recorded:
	Normal   Pulled   pod/web   in 3s
	Warning   Failed   pod/web   no such file`)
		for i := range 1000 {
			recorder.Eventf(pod, "Normal", "Counted", "%d", i)
		}
		err := await().Error()
		assert.Contains(t, err, "1002 were recorded, the last 50 of which are:\n\tNormal   Counted   pod/web   950\n")
		assert.Equal(t, 50, strings.Count(err, "\n"))
	})
}

func TestReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var recorder events.Recorder
		recorder.Event(pod, "Normal", "Started", "before")
		recorder.Event(pod, "Normal", "Pulled", "before")
		recorder.Reset()
		assert.Empty(t, recorder.All())
		go func() {
			time.Sleep(time.Second)
			recorder.Event(pod, "Normal", "Pulled", "")
			time.Sleep(time.Second)
			recorder.Reset() // while a reader waits, which has seen more events than there will be
			recorder.Event(pod, "Normal", "Started", "after")
		}()
		got, err := recorder.Await(t.Context(), because("Started"))
		require.NoError(t, err)
		assert.Equal(t, "after", got.Note)
		assert.Len(t, recorder.All(), 1)
	})
}

// match is not called with the lock held, and sees each event once.
func TestMatchUsesTheRecorder(t *testing.T) {
	var recorder events.Recorder
	recorder.Event(pod, "Normal", "Pulled", "")
	var seen []string
	_, err := recorder.Await(t.Context(), func(e events.Event) bool {
		seen = append(seen, e.Reason)
		if len(recorder.All()) < 3 {
			recorder.Event(pod, "Normal", fmt.Sprint("After", e.Reason), "")
		}
		return e.Reason == "AfterAfterPulled"
	})
	require.NoError(t, err)
	assert.Equal(t, []string{"Pulled", "AfterPulled", "AfterAfterPulled"}, seen)
}

// A recorder that is older than a bubble serves in it and in the next: no channel of an
// Await stays behind.
func TestManyBubbles(t *testing.T) {
	var recorder events.Recorder
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := recorder.Await(ctx, because("Started"))
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			recorder.Event(pod, "Normal", "Pulled", "")
		})
	}
	recorder.Event(pod, "Normal", "Pulled", "outside of any")
}

// With -race, this is the proof that all methods may be called from any goroutine.
func TestConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const recorders, each = 8, 50
		var recorder events.Recorder
		var work sync.WaitGroup
		for i := range recorders {
			mine := fmt.Sprint("Last", i)
			work.Go(func() {
				for range each {
					recorder.Event(pod, "Normal", "Counted", "")
					recorder.EventsV1().Eventf(pod, pod, "Normal", "Counted", "Counting", "")
				}
				recorder.Event(pod, "Normal", mine, "")
			})
			work.Go(func() {
				_, err := recorder.Await(t.Context(), because(mine))
				assert.NoError(t, err)
				_ = recorder.All()
			})
		}
		work.Wait()
		assert.Len(t, recorder.All(), recorders*(2*each+1))
		for range recorders {
			work.Go(recorder.Reset)
		}
		work.Wait()
		assert.Empty(t, recorder.All())
	})
}
