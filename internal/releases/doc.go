// Package releases builds the stock kube-apiserver of other releases of Kubernetes, from Go
// modules, and keeps them in a folder. It never runs them.
package releases
