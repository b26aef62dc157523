package matchers_test

import (
	"errors"
	"fmt"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "snowglobe.test/envtest/matchers"
	"snowglobe.test/envtest/objectcmp"
)

// g prints what a test would be told. A test has gomega.NewWithT(t) instead.
var g = gomega.NewGomega(func(message string, _ ...int) { fmt.Println(message) })

func ExampleHaveCondition() {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}}
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
		{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"},
	}
	g.Expect(pod).To(HaveCondition(corev1.PodScheduled, corev1.ConditionTrue))
	g.Expect(pod).To(HaveCondition(corev1.PodReady, corev1.ConditionTrue))
	// Output:
	// Expected Pod default/web to have condition Ready=True.
	// It has these conditions:
	//     PodScheduled=True
	//     Ready=False, reason ContainersNotReady
}

func ExampleBeControlledBy() {
	owner := &corev1.ReplicationController{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "5e4f"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: "default"}}
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ReplicationController"))}

	g.Expect(pod).To(BeControlledBy(owner))
	owner.UID = "77aa" // as after it was deleted and created again
	g.Expect(pod).To(BeControlledBy(owner))
	// Output:
	// Expected Pod default/web-1 to be controlled by ReplicationController default/web.
	// It has these owners:
	//     ReplicationController web, UID 5e4f, controller
	// The UID to find is 77aa
}

func ExampleFailWith() {
	err := apierrors.NewConflict(corev1.Resource("pods"), "web", errors.New("the object has been modified"))

	g.Expect(err).To(FailWith(metav1.StatusReasonConflict))
	g.Expect(err).To(FailWith(metav1.StatusReasonNotFound))
	// Output:
	// Expected the request to fail with NotFound.
	// It failed with Conflict: Operation cannot be fulfilled on pods "web": the object has been modified
}

func ExampleBeTerminating() {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", Finalizers: []string{"example.test/cleanup"}}}

	g.Expect(pod).To(HaveFinalizer("example.test/cleanup"))
	g.Expect(pod).To(BeTerminating())
	// Output:
	// Expected Pod default/web to be terminating.
	// It has no deletionTimestamp and these finalizers:
	//     example.test/cleanup
}

func ExampleEqualObject() {
	want := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "snow"}, Data: map[string]string{"flakes": "many"}}
	got := want.DeepCopy() // as a server would return it
	got.UID, got.ResourceVersion, got.CreationTimestamp = "5e4f", "12", metav1.Now()

	g.Expect(got).To(EqualObject(want, objectcmp.IgnoreServerFields()))
	g.Expect(got).NotTo(EqualObject(want))
	// Output:
}
