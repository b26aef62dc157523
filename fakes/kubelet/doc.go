// Package kubelet is a fake of the API that a kubelet serves to kube-apiserver: logs,
// exec, attach, run and port-forward with all of their stream protocols, and the pages
// about the node. It owns pods whose processes, logs and ports are functions and lines
// of a test, and the records of what was asked. It never runs a container, never
// registers a node and never reports a pod's status.
package kubelet
