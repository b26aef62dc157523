// Package target owns what API-server cases can be run on. Some clusters are launched for the run
// and end with it: control planes in this process, and stock programs. Others outlive it: those of
// a kubeconfig, on which what cases make is removed. It never decides which cases run.
package target
