// Package consumer is what a module looks like that tests against Snowglobe: it
// requires snowglobe.test, replaces no module of Kubernetes, and needs nothing
// that is not in go.mod.
package consumer
