package events_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientevents "k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"

	"snowglobe.test/envtest/events"
)

// reconcile is part of a controller under test.
func reconcile(recorder record.EventRecorder, pod *corev1.Pod) {
	recorder.Eventf(pod, corev1.EventTypeNormal, "Scheduled", "Successfully assigned %s/%s to node-0", pod.Namespace, pod.Name)
}

// bind is part of another, with the newer API.
func bind(recorder clientevents.EventRecorder, pod *corev1.Pod, node *corev1.Node) {
	recorder.Eventf(pod, node, corev1.EventTypeNormal, "Scheduled", "Binding", "Successfully assigned to %s", node.Name)
}

func ExampleRecorder() {
	var recorder events.Recorder
	go reconcile(&recorder, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}})

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	event, err := recorder.Await(ctx, func(e events.Event) bool {
		return e.Reason == "Scheduled" && e.Regarding.Name == "web"
	})
	fmt.Println(event, err)
	// Output: Normal   Scheduled   pod/web   Successfully assigned default/web to node-0 <nil>
}

func ExampleRecorder_EventsV1() {
	var recorder events.Recorder
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}}
	bind(recorder.EventsV1(), pod, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-0"}})

	for _, event := range recorder.All() {
		fmt.Println(event)
		fmt.Println(event.Action, event.Related.Kind, event.Related.Name)
	}
	// Output:
	// Normal   Scheduled   pod/web   Successfully assigned to node-0
	// Binding Node node-0
}
