// Package matchers provides Gomega matchers for Kubernetes objects and for errors from the
// API server:
//
//	Eventually(komega.Object(pod)).Should(HaveCondition(corev1.PodReady, corev1.ConditionTrue))
//	Expect(client.Update(ctx, stale)).To(FailWith(metav1.StatusReasonConflict))
//
// An object is a pointer or, as in the items of a list, a value; it may be of any typed
// kind, including custom resources, or unstructured. A failure message says what the object
// has instead. The matchers keep no state between calls, so one matcher can be used for any
// number of objects and polls. They never read from a server: controller-runtime's komega
// does that.
package matchers
