// Package matchers owns matchers of Gomega for Kubernetes objects and for the errors of the
// API server:
//
//	Eventually(komega.Object(pod)).Should(HaveCondition(corev1.PodReady, corev1.ConditionTrue))
//	Expect(client.Update(ctx, stale)).To(FailWith(metav1.StatusReasonConflict))
//
// An object is a pointer or, as in the items of a list, a value; of any typed kind, custom
// resources included, or unstructured. What fails is told with what the object has instead.
// The matchers keep nothing between two calls, so one serves any number of objects and
// polls. They never read from a server: komega of controller-runtime does.
package matchers
