// Package envtest runs a real Kubernetes API server inside the process: the
// whole delegation chain of kube-apiserver, on an in-memory store or on etcd, in
// real or in virtual time. It is the face of Snowglobe:
//
//	func TestOperator(t *testing.T) {
//		cp := envtest.Start(t)
//		client := kubernetes.NewForConfigOrDie(cp.Config())
//		...
//	}
//
// Start begins a control plane for a test and stops it with the test; Launch
// does without a test. Simulate runs a test function in virtual time, where an
// hour passes at once. By default nothing leaves the process: no port, no file,
// no binary.
package envtest
