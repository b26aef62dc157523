// Package controllers runs the programs of a control plane that are not API servers, in
// the process: kube-controller-manager's controllers, as many of them as a test wants, and
// kube-scheduler. The code is upstream's; what is left out is their own HTTP server, their
// leader election and their flags. Each is a client of the control plane with users of its
// own, lives in its time, virtual or not, and can stop, crash and start again. Pods that
// run on nodes are in package nodes.
package controllers
