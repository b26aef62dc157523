package matchers_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	. "snowglobe.test/envtest/matchers"
	"snowglobe.test/envtest/objectcmp"
)

func unready() *corev1.Pod {
	pod := web()
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
		{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady", Message: "not ready: [web]"},
	}
	return pod
}

func TestHaveCondition(t *testing.T) {
	falling := &snowfall{Status: snowfallStatus{Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "TooWarm"}}}}
	for name, object := range map[string]any{
		"older type": unready(), "value": *unready(), "unstructured": untyped(t, unready()),
		"metav1.Condition": falling, "unstructured custom resource": untyped(t, falling), "value of a custom resource": *falling,
	} {
		t.Run(name, func(t *testing.T) {
			assert.Empty(t, to(object, HaveCondition(corev1.PodReady, corev1.ConditionFalse)))
			assert.Empty(t, to(object, HaveCondition("Ready", metav1.ConditionFalse, "TooWarm", "ContainersNotReady")))
			assert.NotEmpty(t, to(object, HaveCondition("Ready", "True")), "another status")
			assert.NotEmpty(t, to(object, HaveCondition("Melted", "False")), "another type")
			assert.NotEmpty(t, to(object, HaveCondition("Ready", "False", "Unknown")), "another reason")
			assert.NotEmpty(t, to(object, HaveCondition("Ready", "False", "")), "no reason")
		})
	}
	assert.Empty(t, to([]corev1.Pod{*web(), *unready()}, gomega.ContainElement(HaveCondition("Ready", "False"))))
}

func TestHaveConditionMessages(t *testing.T) {
	const has = `It has these conditions:
    PodScheduled=True
    Ready=False, reason ContainersNotReady: not ready: [web]`
	assert.Equal(t, "Expected Pod default/web to have condition Ready=True.\n"+has, to(unready(), HaveCondition("Ready", "True")))
	assert.Equal(t, "Expected Pod default/web to have condition Ready=False, reason A or B.\n"+has, to(*unready(), HaveCondition("Ready", "False", "A", "B")))
	assert.Equal(t, "Expected Pod default/web not to have condition Ready=False.\n"+has, notTo(unready(), HaveCondition("Ready", "False")))
	assert.Equal(t, "Expected Pod default/web to have condition Ready=True.\nIt has no conditions", to(web(), HaveCondition("Ready", "True")))
}

// odd is an object that JSON can't hold.
type odd struct {
	corev1.Pod `json:",inline"`
	Wakes      chan bool `json:"wakes"`
}

func TestHaveConditionOfOddContent(t *testing.T) {
	matcher := HaveCondition("Ready", "True")
	assert.Contains(t, to(&odd{Wakes: make(chan bool)}, matcher), "have condition Ready=True: read the conditions of odd: ")
	assert.Contains(t, matcher.FailureMessage(&odd{Wakes: make(chan bool)}), "read the conditions of odd: ")
	for want, status := range map[string]any{
		"status.conditions of Snow x is a string: want a list":              map[string]any{"conditions": "Ready"},
		"status.conditions[0] of Snow x is a string: want a condition":      map[string]any{"conditions": []any{"Ready"}},
		"read the conditions of Snow x: .status.conditions accessor error:": "Ready",
		"It has no conditions": nil,
	} {
		object := &unstructured.Unstructured{Object: map[string]any{"kind": "Snow", "metadata": map[string]any{"name": "x"}, "status": status}}
		assert.Contains(t, to(object, HaveCondition("Ready", "True")), want)
	}
}

func TestOwners(t *testing.T) {
	replicas, other := web(), web()
	replicas.Name, replicas.UID = "web-5e4f", "1"
	other.Name, other.UID = "web-5e4f", "2"
	owned, controlled := web(), web()
	owned.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-5e4f", UID: "1"}}
	controlled.OwnerReferences = []metav1.OwnerReference{
		{Kind: "Snowfall", Name: "x", UID: "3", Controller: ptr.To(false)}, {Kind: "ReplicaSet", Name: "web-5e4f", UID: "1", Controller: ptr.To(true)},
	}
	assert.Empty(t, to(owned, BeOwnedBy(replicas)))
	assert.Empty(t, to(untyped(t, owned), BeOwnedBy(untyped(t, replicas))))
	assert.Empty(t, to(controlled, BeOwnedBy(replicas)))
	assert.Empty(t, to(controlled, BeControlledBy(replicas)))
	assert.Equal(t, `Expected Pod default/web to be owned by Pod default/web-5e4f.
It has these owners:
    ReplicaSet web-5e4f, UID 1
The UID to find is 2`, to(owned, BeOwnedBy(other)))
	assert.Equal(t, `Expected Pod default/web not to be controlled by Pod default/web-5e4f.
It has these owners:
    Snowfall x, UID 3
    ReplicaSet web-5e4f, UID 1, controller
The UID to find is 1`, notTo(controlled, BeControlledBy(replicas)))
	assert.Contains(t, to(owned, BeControlledBy(replicas)), "to be controlled by")
	assert.Contains(t, to(web(), BeOwnedBy(replicas)), "It has no owners")
}

// The owner may be created between the making of a matcher and its use.
func TestOwnerWithoutUID(t *testing.T) {
	owner := web()
	orphan := web()
	orphan.OwnerReferences = []metav1.OwnerReference{{Name: "without UID"}}
	matcher := BeOwnedBy(owner)
	assert.Contains(t, to(orphan, matcher), "the owner has no UID: create it")
	owner.UID = "1"
	orphan.OwnerReferences[0].UID = "1"
	assert.Empty(t, to(orphan, matcher))
}

func TestDeletion(t *testing.T) {
	going := web()
	going.Finalizers = []string{"example.test/a", "example.test/b"}
	going.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, time.January, 2, 12, 0, 0, 0, time.UTC)}
	assert.Empty(t, to(going, HaveFinalizer("example.test/b")))
	assert.Empty(t, to(untyped(t, going), HaveFinalizer("example.test/b")))
	assert.Empty(t, to(going, BeTerminating()))
	assert.Empty(t, to(untyped(t, going), BeTerminating()))

	const has = "these finalizers:\n    example.test/a\n    example.test/b"
	assert.Equal(t, "Expected Pod default/web to have finalizer x.\nIt has "+has, to(going, HaveFinalizer("x")))
	assert.Equal(t, "Expected Pod default/web not to be terminating.\nIt has deletionTimestamp 2026-01-02T12:00:00Z and "+has, notTo(going, BeTerminating()))
	assert.Equal(t, "Expected Pod default/web to be terminating.\nIt has no deletionTimestamp and no finalizers", to(web(), BeTerminating()))
}

func TestFailWith(t *testing.T) {
	conflict := apierrors.NewConflict(corev1.Resource("pods"), "web", errors.New("too late"))
	lost := errors.New("connection refused")
	assert.Empty(t, to(conflict, FailWith(metav1.StatusReasonConflict)))
	assert.Empty(t, to(fmt.Errorf("reconcile: %w", conflict), FailWith(metav1.StatusReasonConflict)))
	assert.Empty(t, to(&apierrors.StatusError{}, FailWith(metav1.StatusReasonUnknown)))

	assert.Equal(t, "Expected the request to fail with NotFound.\nIt failed with Conflict: "+conflict.Error(), to(conflict, FailWith(metav1.StatusReasonNotFound)))
	assert.Equal(t, "Expected the request not to fail with Conflict.\nIt failed with Conflict: "+conflict.Error(), notTo(conflict, FailWith(metav1.StatusReasonConflict)))
	assert.Equal(t, "Expected the request to fail with Conflict.\nIt succeeded", to(nil, FailWith(metav1.StatusReasonConflict)))
	assert.Equal(t, "Expected the request to fail with no reason.\nIt failed without an answer of the API server: connection refused", to(lost, FailWith(metav1.StatusReasonUnknown)))
}

func TestEqualObject(t *testing.T) {
	want, got := web(), unready()
	got.UID = "1"
	assert.Empty(t, to(got, EqualObject(want, objectcmp.IgnoreServerFields(), objectcmp.IgnoreStatus())))
	assert.Empty(t, to(*web(), EqualObject(want)), "a value")
	empty := web()
	empty.Labels = map[string]string{}
	assert.Empty(t, to(empty, EqualObject(want)), "Equate is always among the options")
	assert.Empty(t, to(&corev1.PodList{Items: []corev1.Pod{*empty}}, EqualObject(&corev1.PodList{Items: []corev1.Pod{*want}})))

	message := to(got, EqualObject(want, objectcmp.IgnoreStatus()))
	assert.Contains(t, message, "Expected Pod default/web to equal what is wanted (-want +got):\n    &v1.Pod{\n")
	assert.Regexp(t, `(?m)^ +-\s+UID: +"",\n +\+\s+UID: +"1",$`, message)
	assert.NotContains(t, message, "ContainersNotReady", "what the options ignore")
	assert.Contains(t, notTo(want, EqualObject(web())), "Expected an object that does not equal\n")
}

// Whatever is matched, and with whatever, there is an error and no panic.
func TestWrongTypes(t *testing.T) {
	var noPod *corev1.Pod
	objects := []types.GomegaMatcher{
		HaveCondition("Ready", "True"), HaveFinalizer("x"), BeTerminating(), EqualObject(web()),
		BeOwnedBy(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "1"}}), BeControlledBy(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "1"}}),
	}
	for _, matcher := range objects {
		for _, actual := range []any{nil, noPod, "web", 3, metav1.ObjectMeta{}, &metav1.ObjectMeta{}, []corev1.Pod{}, errors.New("x")} {
			for _, message := range []string{to(actual, matcher), notTo(actual, matcher), matcher.FailureMessage(actual)} {
				assert.Contains(t, message, "want a Kubernetes object, got\n", "%T: %v", matcher, actual)
			}
		}
	}
	assert.Contains(t, to("conflict", FailWith("Conflict")), "fail with Conflict: want an error, got\n    <string>: conflict")
	assert.Contains(t, to(web(), BeOwnedBy(noPod)), "be owned by an owner: want a Kubernetes object, got\n")
	assert.Contains(t, to(web(), BeOwnedBy(nil)), "be owned by an owner: want a Kubernetes object, got\n")
	assert.Contains(t, to(web(), EqualObject(nil)), "equal what is wanted, which is no object: want a Kubernetes object, got\n")
	assert.Contains(t, to(untyped(t, web()), EqualObject(web())), "equal Pod default/web: want a *v1.Pod, got a *unstructured.Unstructured: convert one of them")
}

// One matcher sees another object at each poll, errors and missing objects among them.
func TestEventually(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gomega.NewWithT(t)
		polls := 0
		g.Eventually(func() (any, error) {
			polls++
			switch polls {
			case 1:
				return nil, errors.New("not yet")
			case 2:
				return (*corev1.Pod)(nil), nil
			case 3:
				return web(), nil
			}
			return unready(), nil
		}).Should(HaveCondition("Ready", "False"))
		assert.Equal(t, 4, polls)

		answers := []error{nil, errors.New("connection refused"), apierrors.NewNotFound(corev1.Resource("pods"), "web")}
		g.Eventually(func() error {
			answer := answers[0]
			answers = answers[1:]
			return answer
		}).Should(FailWith(metav1.StatusReasonNotFound))
		assert.Empty(t, answers)
	})
}
