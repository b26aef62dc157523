// Package envtest runs a real Kubernetes API server inside the process: the
// whole delegation chain of kube-apiserver, on an in-memory store or on etcd, in
// real or virtual time. It is the main package of Snowglobe:
//
//	func TestOperator(t *testing.T) {
//		cp := envtest.Start(t)
//		client := kubernetes.NewForConfigOrDie(cp.Config())
//		...
//	}
//
// Start is for tests and Launch is for programs; Simulate and SimulateContext are the
// same in virtual time, where an hour passes at once. Options say what differs from a
// server with kube-apiserver's defaults on an empty in-memory store. By default there is
// nothing outside the process: no port, no file, no binary. The options are about
//
//   - servers: WithFlags, WithReplicas, WithStore, WithPostStartHook, WithWatchCacheWindow, WithTimeouts
//   - CRDs and webhooks: WithCRDs, WithCRDPaths, WithWebhookFlag
//   - connections to the servers and from them: WithListener, WithKubeconfig, WithPKI, WithDialer
//   - faults and their order: WithFaults, WithOrder, WithSeed
//   - virtual time: WithClock, WithoutLatency, WithoutHousekeeping
//   - log and trace: WithLog, WithObserver, WithFullTrace
//
// The second control plane of a process, and those after it, start on a store that has the roles, API
// services, flow control and namespaces of the first one with the same flags, with UIDs and times of
// creation of their own. One that is watched from the start writes them itself: with rules, steps, hooks,
// an observer or a full trace.
//
// Rules, records, the store and webhooks have packages of their own; the methods Faults, Trace,
// Store and Webhooks of a ControlPlane return its values of them. Package pool lets tests have control
// planes in turn.
package envtest
