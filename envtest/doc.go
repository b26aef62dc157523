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
// Start is for tests, Launch for programs; Simulate and SimulateContext are the same
// in virtual time, where an hour passes at once. Options say what differs from a
// server with the defaults of kube-apiserver on an empty store in memory. By default
// nothing leaves the process: no port, no file, no binary.
package envtest
