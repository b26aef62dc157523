// Package controllers runs the programs of a control plane that are not API servers, in
// the process: kube-controller-manager's controllers, as many of them as a test wants, and
// kube-scheduler. The code is upstream's, without its HTTP servers, leader election and
// flags. Each program is a client of the control plane with its own users, runs in the
// control plane's time, virtual or not, and can stop, crash and start again. For Pods that
// run on nodes, see package nodes.
package controllers
